"""Library of the Lambda functions and of the Python client: messages, ledger, delivery, queues, templates and
telemetry."""
