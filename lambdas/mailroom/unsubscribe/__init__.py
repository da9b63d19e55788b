"""Opt-out page, which the opt-out link of a mail opens."""
