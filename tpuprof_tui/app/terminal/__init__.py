"""Overrides of private parts of Textual, each with the measured gain."""
