"""Dead letters: which message or event each one is about, why it is a dead letter, and what an operator can
do."""
