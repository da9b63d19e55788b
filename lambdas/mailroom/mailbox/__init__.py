"""The mailbox, written as a producer and read back when a message's time has come."""
