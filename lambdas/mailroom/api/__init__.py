"""HTTP API: takes messages, and reports their statuses. Only its own function imports this package."""
