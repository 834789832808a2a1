"""Indexes of a lane: occupancy, sums and extremes of any window."""
