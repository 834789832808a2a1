"""Draws figures as characters and styles: lanes, strips, charts, legends; glyphs, palettes and themes."""
