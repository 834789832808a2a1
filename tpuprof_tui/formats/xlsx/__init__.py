"""Workbooks as bytes."""
