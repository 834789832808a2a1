"""Two profiles side by side: what belongs together, what changed, and whether that is more than noise."""
