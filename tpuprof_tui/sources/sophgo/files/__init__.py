"""The files and figures of the published converter, to the letter."""
