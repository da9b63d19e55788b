"""The pump: it executes the event source mappings of DynamoDB streams and FIFO queues by AWS's rules."""
