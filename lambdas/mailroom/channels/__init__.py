"""The channels: each has a contract (the attributes of its items) and adapters for its providers."""

OWN_CHANNELS = "OWN_CHANNELS"
"""Environment variable that lists the channels added by the deployer, as JSON: the names of the modules of
their descriptors."""
