"""The published converter's workbook."""
