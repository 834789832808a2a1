"""The timeline pane."""
