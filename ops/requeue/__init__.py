"""Shared by the repairing commands: a deployed stage, the messages that an operator means, their requeuing."""
