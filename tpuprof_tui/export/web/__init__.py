"""Export of a profile as a web page."""
