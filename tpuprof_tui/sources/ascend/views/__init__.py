"""Views of Ascend profiles."""
