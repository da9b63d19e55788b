"""`webhook-key`: what the receivers of one host verify with."""
