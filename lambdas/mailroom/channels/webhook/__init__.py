"""Webhooks, signed as Standard Webhooks has it."""
