"""The timeline pane: layout, painting, key handling and texts."""
