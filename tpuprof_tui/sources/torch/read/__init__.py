"""What opens a PyTorch trace."""
