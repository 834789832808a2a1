"""What is said about a profile: views, each declared once and computed from a query."""
