"""What is said of Ascend profiles alone."""
