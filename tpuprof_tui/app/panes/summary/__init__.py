"""The summary pane: answers of the views, laid out on a page."""
