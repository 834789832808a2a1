"""Readers of Ascend profiles."""
