"""Views of memory snapshots."""
