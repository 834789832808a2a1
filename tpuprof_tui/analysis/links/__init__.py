"""Causal links between events: dependencies, releases of waits, and launches."""
