"""Providers' events: read into one form, and brought into the ledger."""
