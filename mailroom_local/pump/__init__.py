"""The pump: it drives the mappings of DynamoDB streams and FIFO queues by AWS's rules."""
