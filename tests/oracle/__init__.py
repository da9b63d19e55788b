"""The ledger's verbs on three engines: AWS's own, moto's, and the double that the tests use."""
