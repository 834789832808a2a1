"""Indexes of lanes and units (occupancy, prefix sums, bounds), and sorting by column."""
