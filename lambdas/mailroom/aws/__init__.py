"""Access to AWS for every part of Mailroom: clients, DynamoDB's values and batches, queues, secrets."""
