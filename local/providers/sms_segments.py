"""How many segments a text takes: counted here by the rule of GSM 03.38 alone, apart from the library that
the sender counts with, so that the two can be held against each other."""

BASIC = set(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    "ÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
EXTENDED = set("\f^{}\\[~]|€")
"""These take two septets each."""
GSM, UCS2 = (160, 153), (70, 67)
"""Characters in a single segment, and in each of several."""


def segments(text: str) -> int:
    """At least one, as the provider counts an empty text with media."""
    if BASIC.union(EXTENDED).issuperset(text):
        units = [2 if mark in EXTENDED else 1 for mark in text]
        return _fitted(units, *GSM)
    return _fitted([len(mark.encode("utf-16-be")) // 2 for mark in text], *UCS2)


def _fitted(units: list[int], single: int, each: int) -> int:
    """No character is split between two segments."""
    if sum(units) <= single:
        return 1
    count, room = 1, each
    for unit in units:
        if unit > room:
            count, room = count + 1, each
        room -= unit
    return count
