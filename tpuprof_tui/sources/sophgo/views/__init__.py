"""Views that only Sophgo captures have."""
