"""Command line interface: commands, options, help, manual page, completion."""
