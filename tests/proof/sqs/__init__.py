"""Rows whose mails wait in SQS: Mailroom and the bench's baselines, on the emulated AWS of the local stage."""
