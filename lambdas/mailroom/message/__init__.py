"""Messages: their attributes, addresses and statuses, and the outcomes that a provider's response proves."""
