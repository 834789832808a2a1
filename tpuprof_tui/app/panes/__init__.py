"""Panes of the explorer. Each gets the state and answers with messages; none holds another."""
