"""Library of the functions: messages, the ledger, the worker, queues, templates, telemetry."""
