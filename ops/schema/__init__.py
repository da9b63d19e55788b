"""`schema`: the contract of an item, and the answers of the commands, as JSON Schema."""
