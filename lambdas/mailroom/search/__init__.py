"""Search for messages without their ids: by recipient, or the newest messages."""
