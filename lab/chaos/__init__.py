"""Chaos: a stage under load, with faults of its functions and providers. The results are checked at the
simulated providers."""
