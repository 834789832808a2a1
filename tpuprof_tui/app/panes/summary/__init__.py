"""The summary."""
