"""What is said of PyTorch traces alone."""
