"""What providers tell afterwards: read into one form, and brought into the ledger."""
