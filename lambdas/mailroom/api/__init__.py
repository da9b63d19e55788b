"""The HTTP API: messages in, what became of them out. Of the functions only its own imports this."""
