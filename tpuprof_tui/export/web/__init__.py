"""The web page of a profile."""
