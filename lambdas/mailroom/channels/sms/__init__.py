"""Text messages, by Twilio or AWS."""
