"""Converts events of providers, such as deliveries and bounces, to a common form, and writes them into the
ledger."""
