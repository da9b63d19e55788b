"""What the demo sends, and what must become of each message."""
