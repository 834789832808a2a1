"""What is looked at: filters, searches, ranges, order."""
