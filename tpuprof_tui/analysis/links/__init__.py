"""What released what: dependencies and launches."""
