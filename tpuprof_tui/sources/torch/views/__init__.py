"""Views of PyTorch traces."""
