"""The providers' simulators: one HTTP server, and a module for each provider."""
