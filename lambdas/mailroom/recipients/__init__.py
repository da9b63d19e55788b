"""Choices of recipients: the suppression list, opt-outs from topics, and the links by which recipients opt
out."""
