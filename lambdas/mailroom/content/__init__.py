"""Content of messages: objects in the payload bucket, and templates."""
