"""Records of the hardware, the profiler and the runtime: parsing, ordering, unwrapping."""
