"""Binds records to commands."""
