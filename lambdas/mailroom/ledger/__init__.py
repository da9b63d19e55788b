"""The ledger: a table with one item for each message. Each change of an item is one conditional write."""
