"""The channels: for each a contract (what an item may say) and the adapters that speak with a provider."""

OWN_CHANNELS = "OWN_CHANNELS"
"""The variable that names the deployer's own channels, and the module of each one's descriptor, as JSON."""
