"""`reconcile`: messages that nobody is on any more, found and put back on their way."""
