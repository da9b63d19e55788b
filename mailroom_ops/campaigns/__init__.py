"""The command `campaign`."""
