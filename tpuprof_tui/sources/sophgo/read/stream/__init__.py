"""Splits the files of a capture into settings, blocks, commands and detail records."""
