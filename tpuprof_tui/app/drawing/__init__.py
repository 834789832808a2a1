"""From figures to characters and styles."""
