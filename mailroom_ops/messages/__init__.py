"""Messages, as an operator handles them: send one, see where it is, see what failed."""
