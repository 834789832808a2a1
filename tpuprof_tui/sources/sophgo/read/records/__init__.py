"""What the hardware recorded: monitor records in order, on one time line."""
