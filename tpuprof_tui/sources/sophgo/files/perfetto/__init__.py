"""The published converter's Perfetto trace, and what it lacks."""
