"""Findings: instructions and units that deserve attention, and why."""
