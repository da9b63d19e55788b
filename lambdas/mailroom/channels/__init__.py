"""Channels by which messages are sent, such as mail and fax. Each channel's package defines a contract (the
attributes that the channel's items may contain) and an adapter for each provider."""

OWN_CHANNELS = "OWN_CHANNELS"
"""Environment variable for the channels that the deployer has added: a JSON array with the names of the
modules that define the channels' descriptors."""
