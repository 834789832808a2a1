"""What the user is looking at: filters, search, ranges, sort order, display state."""
