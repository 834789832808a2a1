"""What overrides private parts of Textual, each with what it was measured to gain."""
