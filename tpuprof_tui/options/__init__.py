"""The options that produce a profile: what they mean, what is wrong with some, which fulfil a wish.

All that is known of options, rules and wishes is data, in ``tables``: a folder for each source with one table of each.
The modules know types of values and forms of tests, and no option by its name. Nothing else of the package is needed.
"""
