"""Reads profiles of libbmrt: folders ``bmprofile_data-N``."""
