"""Encoder of Perfetto traces."""
