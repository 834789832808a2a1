"""The application: reading, watching, exporting, the terminal."""
