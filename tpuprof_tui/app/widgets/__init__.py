"""Panes of the screen. Each gets the state and answers with messages; none holds another."""
