"""The commands `plan`, `cost` and `quotas`: how long messages take, what they and their stage cost, and the
quotas that a stage needs."""
