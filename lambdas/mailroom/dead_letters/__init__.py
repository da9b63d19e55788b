"""What lies in the dead-letter queues: whose it is, why it failed, and what its producer is told."""
