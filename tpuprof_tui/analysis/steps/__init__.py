"""Steps of a run: recorded by the source, or detected as repeated launch sequences; figures of each step."""
