"""Aggregates of a time window: figures, work sums, groups, call trees, chart data."""
