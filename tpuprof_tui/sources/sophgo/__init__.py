"""Captures of Sophgo TPUs: their reader, views that only they have, and the files of the published converter."""
