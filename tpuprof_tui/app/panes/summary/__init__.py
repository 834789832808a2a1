"""The summary pane."""
