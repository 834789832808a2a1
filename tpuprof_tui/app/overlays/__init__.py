"""Modal screens over the explorer: help, export menu, groups, columns, flame graph, confirmations."""
