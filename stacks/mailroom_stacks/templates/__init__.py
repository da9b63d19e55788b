"""Checks of the project's templates, for synth and for the commands."""
