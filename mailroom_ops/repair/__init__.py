"""The commands that send messages again, correct and settle them, `messages dead-letters` and `restore`."""
