"""Perfetto traces as bytes."""
