"""Events of providers, such as deliveries and bounces: converts them to one form, and writes them into the
ledger."""
