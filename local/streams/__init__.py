"""DynamoDB stream mappings, driven by Lambda's rules: `rules` says what follows, the rest does it."""
