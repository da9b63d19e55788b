"""Messages for operators: send one, see its status, list failures."""
