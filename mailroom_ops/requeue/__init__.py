"""Shared by the repairing commands: a deployed stage, the selection of messages, and their requeuing."""
