"""The size of a ledger item as its writes say it, and the write units that they take."""

from typing import Any


class LedgerSize:
    """Follows one item through its writes and adds up their units: the larger of old and new, per KiB."""

    def __init__(self) -> None:
        self.writes = 0
        self.units = 0
        self.bytes: dict[str, dict[str, int]] = {}
        self.largest = 0

    def write(self, request: dict[str, Any]) -> None:
        """One UpdateItem: what it sets, by attribute."""
        self.writes += 1
        names = request["ExpressionAttributeNames"]
        values = request["ExpressionAttributeValues"]
        item = self.bytes.setdefault(request["Key"]["id"]["S"], {})
        item["key"] = len("id") + len("event_type") + sum(len(each["S"]) for each in request["Key"].values())
        for alias, name in names.items():
            if (value := values.get(":" + name)) is not None:
                item[name] = len(alias) - 1 + _size(value)
        size = sum(item.values())
        self.largest = max(self.largest, size)
        self.units += -(-size // 1024)


def _size(value: dict[str, Any]) -> int:
    """Bytes of an attribute value, as DynamoDB's developer guide counts them."""
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        return (len(content) + 1) // 2 + 1
    if kind == "SS":
        return sum(len(each.encode()) for each in content)
    if kind == "L":
        return 3 + sum(1 + _size(each) for each in content)
    return 3 + sum(1 + len(name) + _size(each) for name, each in content.items())
