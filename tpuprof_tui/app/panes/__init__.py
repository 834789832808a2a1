"""Panes of the explorer. Each shows the state passed to it and requests changes by messages; panes are independent."""
