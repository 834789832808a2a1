"""Export formats, one module each, and the exports, selections and registry that they share."""
