"""Which record is of which command."""
