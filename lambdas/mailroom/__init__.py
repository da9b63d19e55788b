"""What every function shares: messages, the ledger, the worker, queues, templates, telemetry."""
