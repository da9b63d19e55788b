"""Files of entries: CSV and JSON Lines, read from any byte on.

Campaigns read them in S3, and `mailroom import` on an operator's machine.
"""
