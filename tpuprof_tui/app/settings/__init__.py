"""Actions, keys, and what is remembered for a user."""
