"""AWS as every part of Mailroom asks it: clients, DynamoDB's values and batches, queues, secrets."""
