"""`repair`: messages that stopped on their way, dead letters, and batches that a stream gave up on."""
