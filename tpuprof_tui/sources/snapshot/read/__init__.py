"""Readers of memory snapshots."""
