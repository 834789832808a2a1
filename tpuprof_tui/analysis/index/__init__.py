"""Per-lane indexes (occupancy, prefix sums, bounds), sorting by column, and the time axis."""
