"""Reader of Sophgo captures: directories of ``global.profile``, ``cdmlib*.profile`` and ``cdma*.profile``."""
