"""A message, its address, its status and the outcome that a provider's response proves."""
