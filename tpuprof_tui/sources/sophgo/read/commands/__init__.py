"""Decodes issued commands: dynamic nodes, command streams and registers."""
