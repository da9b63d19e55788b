"""Puts the messages of mailbox items into the channels' queues, at once or when they are due."""
