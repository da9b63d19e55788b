"""`plan`: how long many messages take, by a model of the senders, and what they cost."""
