"""Reading Ascend profiles."""
