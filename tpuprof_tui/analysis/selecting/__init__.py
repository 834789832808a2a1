"""What is selected: sessions of profiles, filters, search, ranges, sort order, and what the screen displays."""
