"""Dead letters: their subjects, their causes, and the next steps."""
