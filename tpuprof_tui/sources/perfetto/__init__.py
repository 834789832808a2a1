"""Perfetto traces: their packets as the text of a Chrome trace, which the readers of such traces take."""
