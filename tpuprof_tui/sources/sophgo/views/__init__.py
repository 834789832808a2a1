"""What is said of Sophgo captures alone."""
