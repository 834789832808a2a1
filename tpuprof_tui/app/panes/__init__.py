"""Panes of the explorer: each shows the state it is given and asks for changes by messages; none knows another."""
