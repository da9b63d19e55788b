"""`doctor`: whether a stage can send, and whether somebody would be alerted if it could not."""
