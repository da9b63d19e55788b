"""Names of the rows of the providers' tables of refusals, in numbers, addresses and tokens of simulated
recipients."""

import re


def number_code(number: str) -> str:
    """Return the five digits that name a row of a provider's table: xxxxx of +1 555 00x xxxx; empty for other
    numbers."""
    code = re.fullmatch(r"\+155500(\d{5})", number)
    return code[1] if code else ""


def slug(code: str) -> str:
    """Return the code of a row as a word for an address or a token: small letters, digits and hyphens."""
    return re.sub("[^a-z0-9]+", "-", code.lower()).strip("-")
