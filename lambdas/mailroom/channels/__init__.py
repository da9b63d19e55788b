"""The channels: for each a contract (what an item may say) and the adapters that speak with a provider."""
