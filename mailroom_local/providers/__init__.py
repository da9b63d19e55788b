"""Simulators of providers: one HTTP server, and a module for each provider."""
