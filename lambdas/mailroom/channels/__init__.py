"""The channels: each has a contract (the attributes of its items) and adapters for its providers."""

OWN_CHANNELS = "OWN_CHANNELS"
"""Environment variable with the deployer's own channels, as JSON: the modules of their descriptors."""
