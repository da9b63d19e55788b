"""Rows whose mails wait in SQS: Mailroom and the bench's baselines, on the local stage's emulated AWS."""
