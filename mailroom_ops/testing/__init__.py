"""Tests that a project runs on its own channels: python -m pytest --pyargs mailroom_ops.testing, in its
folder."""
