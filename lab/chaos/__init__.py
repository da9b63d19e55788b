"""Chaos: the whole stage under load while everything around the messages breaks, judged at the providers."""
