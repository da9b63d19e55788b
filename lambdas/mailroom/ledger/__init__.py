"""The ledger: one item a message, each change of it one conditional write."""
