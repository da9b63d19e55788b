"""What a message says: payload objects and templates."""
