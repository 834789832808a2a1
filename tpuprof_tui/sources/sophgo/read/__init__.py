"""Reader of Sophgo captures: ``cdmlib*.profile`` and ``cdma*.profile``, or what libbmrt writes (`bmprofile`)."""
