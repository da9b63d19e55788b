"""The one order of every delivery: read, claim, look for evidence, prepare, submit, record."""
