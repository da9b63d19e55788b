"""`resend`: messages that had their outcome, put on their way once more."""
