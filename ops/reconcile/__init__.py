"""`reconcile`: messages that no queue, schedule or worker holds any more are found and requeued."""
