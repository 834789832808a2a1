"""Source of memory snapshots of PyTorch: pickles of the caching allocator's segments and of its trace."""
