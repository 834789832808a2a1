"""What is worth a look, and why."""
