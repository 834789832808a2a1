"""One module per kind of file; each writes a profile as a stream."""
