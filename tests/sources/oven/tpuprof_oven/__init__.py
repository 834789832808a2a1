"""Recordings of ovens, a made-up source: nothing outside this folder knows a word of it."""
