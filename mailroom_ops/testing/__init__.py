"""A project's tests of its own channels: python -m pytest --pyargs mailroom_ops.testing, in its folder."""
