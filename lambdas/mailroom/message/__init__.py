"""A message, its address, its status and what a provider's answer proves of it."""
