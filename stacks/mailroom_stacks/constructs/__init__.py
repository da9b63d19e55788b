"""Constructs that the stacks share."""
