"""The command `cost`: what messages and their stage cost, and how long messages take."""
