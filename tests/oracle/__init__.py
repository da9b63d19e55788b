"""Comparison of the ledger's methods on three engines: DynamoDB Local, moto and the double of the tests."""
