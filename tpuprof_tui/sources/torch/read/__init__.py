"""Readers of PyTorch traces."""
