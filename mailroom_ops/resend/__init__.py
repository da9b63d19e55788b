"""`resend`: messages that had their outcome are sent again."""
