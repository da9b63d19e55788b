"""The proof of the claim in README.md: senders whose process dies, counted at the provider."""
