"""Content of messages: payload objects and templates."""
