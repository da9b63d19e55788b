"""Tables in memory, with the operations of boto3's DynamoDB client that Mailroom uses."""

import re
import threading
import zlib
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, wraps
from itertools import groupby
from operator import itemgetter
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from boto3.session import Session
from botocore.exceptions import ClientError

from tests.support.dynamodb.expressions import Condition, condition, projection, update
from tests.support.dynamodb.values import Item, Refusal, Value, copied, scalar, size_of, unknown

ITEM_BYTES = 405_000
"""Largest item, as in moto. Its authors found that the real limit lies between 400,000 and 409,600 bytes."""
ACCOUNT = "123456789012"  # the same limit as in moto
KEY_BYTES = (2048, 1024)
PAGE_BYTES = 1_000_000
BATCH_KEYS = 100
BATCH_STATEMENTS = 25
TRANSACTION_ITEMS = 100
BATCH_BYTES = 16 * 1024 * 1024
_INSERT = re.compile(r"""INSERT INTO "(?P<table>[^"]+)" VALUE \{(?P<fields>('[^']+': \?(, )?)+)\}""")
_FIELD = re.compile(r"'([^']+)': \?")
_FAILED = "ConditionalCheckFailedException"
_CANCELLED = "TransactionCanceledException"
_ERRORS = (_FAILED, "ResourceInUseException", "ResourceNotFoundException", _CANCELLED)
Position = tuple[Any, ...]
"""Sort key of an item in the order of a table or of an index."""
Operation = Callable[..., dict[str, Any]]


class Items(UserDict[Position, Item]):
    """Items of a table by their position. Lists in the order of a key are kept until the next write: a query
    of page after page would otherwise sort the whole table for each page."""

    def __init__(self) -> None:
        super().__init__()
        self._lists: dict[tuple[str, ...], dict[Any, list[tuple[Position, Item]]]] = {}

    # Every other way to change a UserDict calls one of these two.
    def __setitem__(self, position: Position, item: Item) -> None:
        self._lists.clear()
        self.data[position] = item

    def __delitem__(self, position: Position) -> None:
        self._lists.clear()
        del self.data[position]

    def in_order(self, keys: tuple[str, ...], partition: object = None) -> list[tuple[Position, Item]]:
        """Return the items with these keys in their order, each with the values of the keys.

        With `partition`, only the items with this value of the first key.
        """
        if keys not in self._lists:
            keyed = (item for item in self.data.values() if all(name in item for name in keys))
            entries = ((tuple(scalar(item[name]) for name in keys), item) for item in keyed)
            ordered = sorted(entries, key=itemgetter(0))
            by_partition = {value: [*items] for value, items in groupby(ordered, lambda entry: entry[0][0])}
            self._lists[keys] = {None: ordered, **by_partition}
        return self._lists[keys].get(partition, [])


@dataclass(frozen=True)
class Write:
    """A valid put, update or deletion, before it is applied."""

    table: "Table"
    position: Position
    make: Callable[[Item | None], Item | None]
    """Return the new item for the present one, or None for a deletion. Raises Refusal if the present item
    fails the condition.
    """

    def made(self) -> Item | None:
        """Return the new item for the item that is in the table now.

        Raises Refusal if it fails the condition.
        """
        return self.make(self.table.items.get(self.position))

    def store(self, item: Item | None) -> None:
        if item is None:
            self.table.items.pop(self.position, None)
        else:
            self.table.items[self.position] = item


class Table:
    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.definition = deepcopy(definition)
        self.keys = _keys(definition)
        self.types = {
            each["AttributeName"]: each["AttributeType"] for each in definition["AttributeDefinitions"]
        }
        self.indexes = {each["IndexName"]: each for each in definition.get("GlobalSecondaryIndexes", ())}
        self.items = Items()
        self.about: dict[str, Any] = {"CreationDateTime": datetime.now(UTC)}
        """Fields of the response of DescribeTable, except for the table's name and size."""

    def position_of(self, item: Item) -> Position:
        """Return the position of an item. Raises Refusal if its key does not fit the table."""
        return self.position({name: item[name] for name in self.keys if name in item})

    def position(self, key: Mapping[str, Value]) -> Position:
        """Return the position of the item with this key.

        Raises Refusal for a key that does not fit the table.
        """
        if key.keys() != set(self.keys):
            raise Refusal("The provided key element does not match the schema")
        for name, most in zip(self.keys, KEY_BYTES, strict=False):
            held = key[name].get(self.types[name])
            if not held or len(held.encode() if isinstance(held, str) else held) > most:
                raise Refusal(f"One or more parameter values were invalid: type or size of the key {name}")
        return tuple(scalar(key[name]) for name in self.keys)

    def check(self, item: Item, noun: str = "") -> None:
        """Raise Refusal if an item is too large, or has a value that cannot be a key of an index."""
        if size_of(item) > ITEM_BYTES:
            raise Refusal(f"Item size{noun} has exceeded the maximum allowed size")
        for name, index in self.indexes.items():
            for key in _keys(index):
                if key in item and not item[key].get(self.types[key]):
                    raise Refusal(f"One or more parameter values were invalid: {key} for the index {name}")


def _keys(definition: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the key attributes of a table or an index, the partition key first."""
    schema = sorted(definition["KeySchema"], key=lambda each: str(each["KeyType"]))
    return tuple(each["AttributeName"] for each in schema)


@cache
def _error(code: str) -> type[ClientError]:
    return type(code, (ClientError,), {}) if code in _ERRORS else ClientError


_OPERATIONS: dict[str, Operation] = {}


def _operation(options: str) -> Callable[[Operation], Operation]:
    """Mark a method as an operation of the client that supports these options."""
    known = frozenset(options.split())

    def decorate(method: Operation) -> Operation:
        name = "".join(map(str.capitalize, method.__name__.split("_")))

        @wraps(method)
        def call(self: "InMemoryDynamoDB", **request: Any) -> dict[str, Any]:
            if not known.issuperset(request):
                unknown(f"{name} with {sorted(request.keys() - known)}")
            return self._make_api_call(name, request)

        _OPERATIONS[name] = method
        return call

    return decorate


_NAMED = "TableName ExpressionAttributeNames "
_CONDITIONAL = f"{_NAMED} ConditionExpression ExpressionAttributeValues ReturnValuesOnConditionCheckFailure "
_PAGED = (
    f"{_NAMED} ExpressionAttributeValues FilterExpression ProjectionExpression Select Limit"
    " ExclusiveStartKey ConsistentRead IndexName "
)


class InMemoryDynamoDB:
    """The operations of `boto3.client("dynamodb")` that Mailroom uses, with boto3's arguments."""

    exceptions = SimpleNamespace(**{code: _error(code) for code in _ERRORS})

    def __init__(self, region: str = "us-east-1") -> None:
        self.meta = SimpleNamespace(region_name=region)
        self._endpoint = SimpleNamespace(http_session=SimpleNamespace(_pool_classes_by_scheme={}))
        self.tables: dict[str, Table] = {}
        self._lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        unknown(f"the operation {name}")

    def _make_api_call(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Make one call at a time, like a client of botocore.

        A Refusal becomes the error that boto3 raises.
        """
        try:
            with self._lock:
                return _OPERATIONS[name](self, request)
        except Refusal as refusal:
            answer: Any = {"Error": {"Code": refusal.code, "Message": str(refusal)}}
            answer["ResponseMetadata"] = {"HTTPStatusCode": 400}
            if refusal.reasons:
                answer["CancellationReasons"] = refusal.reasons
            if refusal.item is not None:
                answer["Item"] = copied(refusal.item)
            raise _error(refusal.code)(answer, name) from None

    def empty(self) -> None:
        """Remove every item of every table."""
        for table in self.tables.values():
            table.items.clear()

    def image(self, table: str, key: Mapping[str, Value]) -> Item | None:
        """Return a copy of an item for a stream's record, which later writes do not change.

        Raises Refusal for an invalid key.
        """
        return self.tables[table].items.get(self.tables[table].position(key))

    @_operation(
        "TableName KeySchema AttributeDefinitions BillingMode GlobalSecondaryIndexes StreamSpecification"
    )
    def create_table(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if request["TableName"] in self.tables:
            raise Refusal(f"Table already exists: {request['TableName']}", "ResourceInUseException")
        self.tables[request["TableName"]] = Table(request)
        return {"TableDescription": {"TableName": request["TableName"]}}

    @_operation("TableName")
    def delete_table(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._table(request)
        del self.tables[request["TableName"]]
        return {"TableDescription": {"TableName": request["TableName"]}}

    @_operation("TableName")
    def describe_table(self, request: Mapping[str, Any]) -> dict[str, Any]:
        table, name = self._table(request), request["TableName"]
        arn = f"arn:aws:dynamodb:{self.meta.region_name}:{ACCOUNT}:table/{name}"
        about = {**table.about, "ItemCount": len(table.items), "KeySchema": table.definition["KeySchema"]}
        return {"Table": {"TableName": name, "TableArn": arn, **about}}

    @_operation("")
    def list_tables(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"TableNames": sorted(self.tables)}

    @_operation(f"{_NAMED} Key ConsistentRead ProjectionExpression")
    def get_item(self, request: Mapping[str, Any]) -> dict[str, Any]:
        table, wanted = self._table(request), _wanted(request)
        item = table.items.get(table.position(request["Key"]))
        return {} if item is None else {"Item": copied(_part(item, wanted))}

    @_operation("RequestItems")
    def batch_get_item(self, request: Mapping[str, Any]) -> dict[str, Any]:
        asked = request["RequestItems"]
        if sum(len(each["Keys"]) for each in asked.values()) > BATCH_KEYS:
            raise Refusal("Too many items requested for the BatchGetItem call")
        found: dict[str, list[Item]] = {name: [] for name in asked}
        left: dict[str, Any] = {}
        size = 0
        for name, each in asked.items():
            known = {"Keys", "ConsistentRead", "ProjectionExpression", "ExpressionAttributeNames"}
            if not known.issuperset(each):
                unknown(f"BatchGetItem with {sorted(each.keys() - known)}")
            table, wanted = self._table({"TableName": name}), _wanted(each)
            positions = [table.position(key) for key in each["Keys"]]
            if len(set(positions)) < len(positions):
                raise Refusal("Provided list of item keys contains duplicates")
            for key, position in zip(each["Keys"], positions, strict=True):
                item = _part(table.items.get(position, {}), wanted)
                size += size_of(item)
                if size > BATCH_BYTES:
                    left.setdefault(name, {**each, "Keys": []})["Keys"].append(key)
                elif item:
                    found[name].append(copied(item))
        return {"Responses": found, "UnprocessedKeys": left}

    @_operation(f"{_CONDITIONAL} Item ReturnValues")
    def put_item(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if request.get("ReturnValues") == "ALL_NEW":
            raise Refusal("Return values set to invalid value")
        write = self._put(request)
        old = write.table.items.get(write.position)
        write.store(write.made())
        return _returned(request, old, None)

    def _put(self, request: Mapping[str, Any]) -> Write:
        """Build the write of a put. Raises Refusal for a request that is invalid for any item."""
        table, new = self._table(request), copied(request["Item"])
        position = table.position_of(new)
        table.check(new)
        require = _requirement(request)

        def make(old: Item | None) -> Item:
            require(old)
            return new

        return Write(table, position, make)

    @_operation("RequestItems")
    def batch_write_item(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Put and delete items. Rejects the call if two entries have one key."""
        asked = request["RequestItems"]
        if not 1 <= sum(map(len, asked.values())) <= BATCH_STATEMENTS:
            raise Refusal("Too many items requested for the BatchWriteItem call")
        writes = [
            self._written(kind, {"TableName": name, **each})
            for name, entries in asked.items()
            for entry in entries
            for kind, each in entry.items()
        ]
        _refuse_doubles(writes, "Provided list of item keys contains duplicates")
        for write in writes:
            write.store(write.made())
        return {"UnprocessedItems": {}}

    def _written(self, kind: str, entry: Mapping[str, Any]) -> Write:
        """Build the write of a batch entry. Raises Refusal for an entry that is invalid for any item."""
        match kind:
            case "PutRequest":
                return self._put(entry)
            case "DeleteRequest":
                table = self._table(entry)
                return Write(table, table.position(entry["Key"]), lambda _: None)
        return unknown(f"a batch's {kind}")

    @_operation("TransactItems")
    def transact_write_items(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Apply updates and puts of different items: all of them, or none.

        An entry that is invalid in itself rejects the call. A failed condition cancels the transaction.
        """
        asked = [*((kind, each) for entry in request["TransactItems"] for kind, each in entry.items())]
        if not 1 <= len(asked) <= TRANSACTION_ITEMS:
            raise Refusal("Member must have length between 1 and 100")
        writes = [self._entry(kind, each) for kind, each in asked]
        _refuse_doubles(writes, "Transaction request cannot include multiple operations on one item")
        items, reasons = list[Item | None](), list[dict[str, Any]]()
        for write in writes:
            try:
                items.append(write.made())
                reasons.append({"Code": "None"})
            except Refusal as refused:
                item: Any = {} if refused.item is None else {"Item": refused.item}
                reasons.append({"Code": _inner_code(refused), "Message": f"{refused}", **item})
        if len(items) < len(writes):
            raise Refusal("Transaction cancelled", _CANCELLED, reasons=reasons)
        for write, new in zip(writes, items, strict=True):
            write.store(new)
        return {}

    def _entry(self, kind: str, entry: Mapping[str, Any]) -> Write:
        """Build the write of a transaction entry.

        Raises Refusal for an entry that is invalid for any item.
        """
        match kind:
            case "Put":
                return self._put(entry)
            case "Update":
                return self._update(entry)
        return unknown(f"a transaction's {kind}")

    @_operation("Statements")
    def batch_execute_statement(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Run INSERT statements of whole items, in which each attribute is a parameter.

        A key that occurs twice rejects the call before any write, as on AWS; DynamoDB Local 1.25.1 applies
        the earlier statements. Any other error is the response of its statement alone.
        """
        if not 1 <= len(request["Statements"]) <= BATCH_STATEMENTS:
            raise Refusal("Member must have length between 1 and 25")
        writes = [self._insertion(*_insertion(each)) for each in request["Statements"]]
        keyed = [each for each in writes if isinstance(each, Write)]
        _refuse_doubles(keyed, "Provided list of item keys contains duplicates")
        return {"Responses": [_inserted(each) for each in writes]}

    def _insertion(self, name: str, new: Item) -> Write | Refusal:
        """Return the write of an INSERT, or a Refusal if the key does not fit the table."""

        def make(old: Item | None) -> Item:
            table.check(new)
            if old is not None:
                raise Refusal("Duplicate primary key exists in table", "DuplicateItemException")
            return new

        try:
            table = self._table({"TableName": name})
            return Write(table, table.position_of(new), make)
        except Refusal as refused:
            return refused

    @_operation(f"{_CONDITIONAL} Key ReturnValues")
    def delete_item(self, request: Mapping[str, Any]) -> dict[str, Any]:
        table = self._table(request)
        position = table.position(request["Key"])
        old = table.items.get(position)
        _requirement(request)(old)
        table.items.pop(position, None)
        return _returned(request, old, None)

    @_operation(f"{_CONDITIONAL} Key UpdateExpression ReturnValues")
    def update_item(self, request: Mapping[str, Any]) -> dict[str, Any]:
        write = self._update(request)
        old, new = write.table.items.get(write.position), write.made()
        write.store(new)
        return _returned(request, old, new)

    def _update(self, request: Mapping[str, Any]) -> Write:
        """Build the write of an update. Raises Refusal for a request that is invalid for any item."""
        table = self._table(request)
        position = table.position(request["Key"])
        change = update(*_texts(request, "UpdateExpression"))
        if any(path[0] in table.keys for path in change.paths):
            raise Refusal("One or more parameter values were invalid: Cannot update a part of the key")
        require = _requirement(request, change.mentions)

        def make(old: Item | None) -> Item:
            require(old)
            before = copied(request["Key"]) if old is None else old
            new = change.apply(before, request.get("ExpressionAttributeValues") or {})
            table.check(new, " to update")
            return new

        return Write(table, position, make)

    @_operation(f"{_PAGED} KeyConditionExpression ScanIndexForward")
    def query(self, request: Mapping[str, Any]) -> dict[str, Any]:
        keys = condition(*_texts(request, "KeyConditionExpression"))
        values = request.get("ExpressionAttributeValues") or {}
        texts = [values[alias]["S"] for alias in keys.mentions if "S" in values.get(alias, ())]
        if not all(0 < len(text.encode()) <= KEY_BYTES[0] for text in texts):
            raise Refusal("One or more parameter values were invalid: an empty or too long key")
        return self._page(request, keys)

    @_operation(f"{_PAGED} Segment TotalSegments")
    def scan(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._page(request, condition(None, ()))

    def _page(self, request: Mapping[str, Any], keys: Condition) -> dict[str, Any]:
        """Return one page of a query or a scan, in the order of the table or of the index."""
        table, values = self._table(request), request.get("ExpressionAttributeValues") or {}
        only, wanted = condition(*_texts(request, "FilterExpression")), _wanted(request, check=False)
        _, mentioned = projection(*_texts(request, "ProjectionExpression"))
        _check_mentions(request, keys.mentions | only.mentions | mentioned)
        order, shown = table.keys, None
        if index := self._index(request, table):
            order = (*_keys(index), *table.keys)
            shown = _shown(index, order)
        alias = keys.equals.get(order[0])
        standing = table.items.in_order(order, None if alias is None else scalar(values[alias]))
        if start := request.get("ExclusiveStartKey"):
            last = tuple(scalar(start[name]) for name in order)
            ahead = request.get("ScanIndexForward", True)
            standing = [each for each in standing if (each[0] > last if ahead else each[0] < last)]
        standing = [each for each in standing if keys.holds(each[1], values)]
        if (total := request.get("TotalSegments", 1)) > 1:
            at = len(order) - len(table.keys)  # an index's keys precede those of the table
            ours = request["Segment"]
            standing = [each for each in standing if zlib.crc32(str(each[0][at]).encode()) % total == ours]
        if not request.get("ScanIndexForward", True):
            standing.reverse()
        read = _read(standing, request.get("Limit"))
        found = [_part(_part(item, shown), wanted) for _, item in read if only.holds(item, values)]
        reply: dict[str, Any] = {"Count": len(found), "ScannedCount": len(read)}
        if request.get("Select", "COUNT") != "COUNT":
            unknown(f"Select {request['Select']}")
        if "Select" not in request:
            reply["Items"] = [copied(item) for item in found]
        if len(read) < len(standing):
            reply["LastEvaluatedKey"] = {name: read[-1][1][name] for name in order}
        return reply

    def _index(self, request: Mapping[str, Any], table: Table) -> Mapping[str, Any] | None:
        name = request.get("IndexName")
        if name is not None and (name not in table.indexes or request.get("ConsistentRead")):
            raise Refusal(f"The table does not have the index {name}, or not for consistent reads")
        return table.indexes.get(name)

    def get_paginator(self, operation: str) -> Any:
        """Return a paginator that supports a loop over its pages."""
        return paginator(getattr(self, operation))

    def _table(self, request: Mapping[str, Any]) -> Table:
        if request["TableName"] not in self.tables:
            raise Refusal("Requested resource not found", "ResourceNotFoundException")
        return self.tables[request["TableName"]]


def paginator(call: Callable[..., dict[str, Any]]) -> Any:
    """Return a paginator of the operation that `call` makes."""

    def pages(
        *,
        PaginationConfig: Mapping[str, int] | None = None,  # noqa: N803 - boto3's name
        **request: Any,
    ) -> Iterator[dict[str, Any]]:
        request |= _limit(PaginationConfig or {})
        while True:
            page = call(**request)
            yield page
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    return SimpleNamespace(paginate=pages)


def _limit(config: Mapping[str, int]) -> dict[str, int]:
    """Return the option for each call that a paginator's configuration sets."""
    if config.keys() - {"PageSize"}:
        unknown(f"PaginationConfig {config}")
    return {"Limit": config["PageSize"]} if config else {}


_INNER_CODES = {"ValidationException": "ValidationError"}
"""Codes of errors of one statement in a batch or one entry in a transaction, by the exception's name, if they
differ from the name without its suffix.
"""


def _inner_code(refused: Refusal) -> str:
    return _INNER_CODES.get(refused.code, refused.code.removesuffix("Exception"))


def _refuse_doubles(writes: Sequence[Write], message: str) -> None:
    """Raise Refusal with this message if two writes have the same item."""
    if len({(id(each.table), each.position) for each in writes}) < len(writes):
        raise Refusal(message)


def _inserted(write: Write | Refusal) -> dict[str, Any]:
    """Apply an INSERT and return its response."""
    try:
        if isinstance(write, Refusal):
            raise write
        write.store(write.made())
    except Refusal as refused:
        return {"Error": {"Code": _inner_code(refused), "Message": f"{refused}"}}
    return {"TableName": write.table.definition["TableName"]}


def _insertion(statement: Mapping[str, Any]) -> tuple[str, Item]:
    """Return the table and the item of an INSERT."""
    insertion = _INSERT.fullmatch(statement["Statement"])
    if insertion is None or not {"Statement", "Parameters"}.issuperset(statement):
        unknown(f"the statement {statement}")
    names = _FIELD.findall(insertion["fields"])
    return insertion["table"], copied(dict(zip(names, statement["Parameters"], strict=True)))


def _texts(request: Mapping[str, Any], kind: str) -> tuple[Any, tuple[tuple[str, str], ...]]:
    """Return an expression, and the names that the request defines for it."""
    return request.get(kind), tuple((request.get("ExpressionAttributeNames") or {}).items())


def _wanted(request: Mapping[str, Any], *, check: bool = True) -> frozenset[str] | None:
    """Return the attributes that a read projects, or None for all."""
    wanted, mentioned = projection(*_texts(request, "ProjectionExpression"))
    if check:
        _check_mentions(request, mentioned)
    return wanted


def _requirement(
    request: Mapping[str, Any], more: frozenset[str] = frozenset()
) -> Callable[[Item | None], None]:
    """Return a check of the request's condition, which raises Refusal for an item that does not meet it.

    Raises Refusal for an invalid condition. `more` are the names and values that other expressions mention.
    """
    only_if = condition(*_texts(request, "ConditionExpression"))
    _check_mentions(request, only_if.mentions | more)

    def require(old: Item | None) -> None:
        if not only_if.holds(old or {}, request.get("ExpressionAttributeValues") or {}):
            shown = old if request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" else None
            raise Refusal("The conditional request failed", _FAILED, shown)

    return require


def _check_mentions(request: Mapping[str, Any], mentioned: frozenset[str]) -> None:
    """Check that each defined name and value is used, and that each used one is defined."""
    names, values = request.get("ExpressionAttributeNames"), request.get("ExpressionAttributeValues")
    if values is not None and not values:
        raise Refusal("ExpressionAttributeValues must not be empty")
    if mentioned != (names or {}).keys() | (values or {}).keys():
        odd = sorted(mentioned.symmetric_difference({*(names or ()), *(values or ())}))
        raise Refusal(f"Names or values are given and unused in expressions, or not defined: {odd}")


def _returned(request: Mapping[str, Any], old: Item | None, new: Item | None) -> dict[str, Any]:
    wanted = request.get("ReturnValues", "NONE")
    if wanted not in ("NONE", "ALL_OLD", "ALL_NEW"):
        unknown(f"ReturnValues {wanted}")
    image = {"NONE": None, "ALL_OLD": old, "ALL_NEW": new}[wanted]
    return {"Attributes": copied(image)} if image else {}


def _shown(index: Mapping[str, Any], keys: Sequence[str]) -> frozenset[str] | None:
    """Return the attributes that an index contains, or None for all."""
    projected = index["Projection"]
    return (
        None
        if projected["ProjectionType"] == "ALL"
        else frozenset((*keys, *projected.get("NonKeyAttributes", ())))
    )


def _part(item: Item, wanted: frozenset[str] | None) -> Item:
    return item if wanted is None else {name: item[name] for name in item if name in wanted}


def _read(standing: Sequence[tuple[Position, Item]], limit: int | None) -> Sequence[tuple[Position, Item]]:
    """Return the items that one page reads: at most `limit`, and at most a page's bytes."""
    size = 0
    for at, (_, item) in enumerate(standing):
        size += size_of(item)
        if at == limit or (at and size > PAGE_BYTES):
            return standing[:at]
    return standing


def in_memory_client() -> Any:
    """Return a client with new tables, typed as boto3's client."""
    return InMemoryDynamoDB()


@contextmanager
def in_memory_dynamodb() -> Iterator[None]:
    """Return tables in memory, one set for each region, to callers of boto3.client("dynamodb") until the
    block ends.
    """
    regions: dict[str, InMemoryDynamoDB] = {}
    real = Session.client

    def client(session: Session, service_name: Any, region_name: Any = None, **options: Any) -> Any:
        if service_name != "dynamodb":
            return real(session, service_name, region_name, **options)
        region = region_name or session.region_name or "us-east-1"
        return regions.setdefault(region, InMemoryDynamoDB(region))

    with patch.object(Session, "client", client):
        yield
