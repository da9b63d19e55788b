"""`doctor`: whether a stage can send, and whether somebody would hear if it could not."""
