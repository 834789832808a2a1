"""Comparison of two profiles: alignment of launches and events, differences, and their statistical significance."""
