"""Drawing in character cells: lanes, strips, charts and legends; glyphs, palettes and themes."""
