"""The ledger: one item a message, each change of it one conditional write."""

# A token outlives its claim's release.
UNCLAIMED = """attribute_not_exists(startedAt) AND attribute_not_exists(completedAt)
    AND attribute_not_exists(claim_token)"""
"""The condition that no worker has claimed a message, in this life or one before. Producers' code has it too,
so it needs no package."""
