"""What opens over the explorer."""
