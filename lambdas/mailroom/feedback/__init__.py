"""Feedback of providers: events such as deliveries and bounces are converted to a common form and written
into the ledger."""
