"""Perfetto trace: that of the published converter, with additions."""
