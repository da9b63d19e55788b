"""The commands `plan` and `cost`: how long messages take, and what they and their stage cost."""
