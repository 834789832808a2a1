"""From the files of a capture to items with a length: files, blocks, settings, runs."""
