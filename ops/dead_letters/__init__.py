"""What lies in a stage's dead-letter queues: seen, explained, and put back on its way."""
