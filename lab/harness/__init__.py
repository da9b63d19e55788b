"""Puts messages on a local stage, causes faults meanwhile, and checks the outcome of each message at the
simulated providers. The demo and the chaos runs use it with different configurations."""
