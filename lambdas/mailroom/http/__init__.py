"""HTTP in both directions: allowed addresses, single requests, the proof of a response, and our own API."""
