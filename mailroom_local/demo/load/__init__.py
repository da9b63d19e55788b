"""What the demo sends, by channel: all good messages, and whatever a mailroom meets sooner or later."""
