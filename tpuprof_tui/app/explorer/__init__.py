"""The explorer screen and its controllers (navigation, search, filtering, marks, export requests)."""
