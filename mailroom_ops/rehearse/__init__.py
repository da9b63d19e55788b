"""`mailroom rehearse`: the first day of a stage, in a few minutes."""
