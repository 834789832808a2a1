"""Captures of Sophgo TPUs: how they are read, what is said of them alone, and the published converter's files."""
