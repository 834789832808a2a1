"""Screens: loading, choosing a capture, exploring a profile, help."""
