"""Turns the mailbox's items into work on the channels' queues, at once or when their time has come."""
