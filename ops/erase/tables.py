"""Reading a whole table, and changing one item of it: in pages, with flat memory, several at a time."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

from mailroom.aws.dynamo import Value
from ops.erase.images import Image

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

SEGMENTS = 4
"""Read side by side; one page of each is held, a megabyte at most."""


class Changed(Exception):
    """The item is another than the one that was read."""


def scan(client: "DynamoDBClient", table: str, read: Callable[[int], None]) -> Iterator[dict[str, Value]]:
    """Every item, in no order, as it stands now; `read` is told how many more were read."""

    def page(segment: int, start: Any) -> Any:
        more = {"ExclusiveStartKey": start} if start else {}
        return client.scan(
            TableName=table, Segment=segment, TotalSegments=SEGMENTS, ConsistentRead=True, **more
        )

    with ThreadPoolExecutor(SEGMENTS) as pool:
        pending: dict[Future[Any], int] = {pool.submit(page, at, None): at for at in range(SEGMENTS)}
        while pending:
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for each in done:
                segment, reply = pending.pop(each), each.result()
                if "LastEvaluatedKey" in reply:
                    pending[pool.submit(page, segment, reply["LastEvaluatedKey"])] = segment
                yield from reply["Items"]
                read(len(reply["Items"]))


def rewrite(
    client: "DynamoDBClient",
    table: str,
    key: Mapping[str, Value],
    old: Image,
    new: Image,
    condition: str = "",
) -> None:
    """Bring an item from `old` to `new`, attribute by attribute, and entry by entry of its maps, so that what
    others write beside it stays. Raises Changed where one of these is not as in `old` any more, or where
    `condition` does not hold."""
    update = _Update()
    _differ(update, (), old, new)
    if not update.actions:
        return
    conditions = [*update.conditions, *([condition] if condition else [])]
    text = " ".join(f"{verb} {', '.join(parts)}" for verb, parts in update.actions.items())
    values = {"ExpressionAttributeValues": update.values} if update.values else {}
    try:
        client.update_item(
            TableName=table,
            Key=key,
            UpdateExpression=text,
            ConditionExpression=" AND ".join(conditions),
            ExpressionAttributeNames=update.names,
            **values,  # type: ignore[arg-type] # a mapping that may be empty is typed by its values alone
        )
    except client.exceptions.ConditionalCheckFailedException:
        raise Changed(f"{table}: an item has changed meanwhile") from None


class _Update:
    """An update's expression as it grows."""

    def __init__(self) -> None:
        self.actions: dict[str, list[str]] = {}
        self.conditions: list[str] = []
        self.names: dict[str, str] = {}
        self.values: dict[str, Value] = {}

    def path(self, names: tuple[str, ...]) -> str:
        aliases = []
        for name in names:
            alias = f"#n{len(self.names)}"
            self.names[alias] = name
            aliases.append(alias)
        return ".".join(aliases)

    def value(self, value: Value) -> str:
        alias = f":v{len(self.values)}"
        self.values[alias] = value
        return alias


def _differ(update: _Update, where: tuple[str, ...], old: Image, new: Image) -> None:
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if before and after and "M" in before and "M" in after and not where:
            _differ(update, (name,), before["M"], after["M"])
            continue
        path = update.path((*where, name))
        if before is not None:
            update.conditions.append(f"{path} = {update.value(before)}")
        if after is None:
            update.actions.setdefault("REMOVE", []).append(path)
        else:
            update.actions.setdefault("SET", []).append(f"{path} = {update.value(after)}")
