"""The explorer's screen and its parts."""
