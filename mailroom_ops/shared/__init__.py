"""Modules that several commands share: terminal output, options, times, and a deployed stage."""
