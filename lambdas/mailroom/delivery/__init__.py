"""Delivery of messages to providers. Every channel has the same order of steps: read, claim, look for
evidence, prepare, submit, record."""
