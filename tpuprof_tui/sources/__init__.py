"""Readers of profiles on disk: one package per source format, and the catalog that chooses the one for a path."""
