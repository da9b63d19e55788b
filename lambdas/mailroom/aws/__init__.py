"""Access to AWS: clients, DynamoDB's values and batches, queues and secrets."""
