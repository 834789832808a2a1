"""What was issued: nodes, commands, registers."""
