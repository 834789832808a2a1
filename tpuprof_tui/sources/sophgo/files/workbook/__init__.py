"""Workbook of the published converter."""
