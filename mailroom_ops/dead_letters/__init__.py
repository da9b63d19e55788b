"""What lies in a stage's dead-letter queues: seen and explained."""
