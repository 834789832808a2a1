"""Registry of actions, commands and key bindings; the user's configuration file and preferences."""
