"""Compares the DynamoDB double with moto: the first time that a test makes a request, moto gets it too.

Two requests are equal if they have the same operation, expressions, options and outcome, in one process. So
every expression of Mailroom is compared with moto, for a condition that holds and for one that does not.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from typing import Any

import botocore.session
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.support.dynamodb.client import KEY_BYTES, InMemoryDynamoDB
from tests.support.dynamodb.values import Item, Refusal
from tests.support.unjudged import others

_READS = ("Query", "Scan", "BatchGetItem")
_BATCH = "BatchWriteItem"
_WRITES = ("GetItem", "PutItem", "UpdateItem", "DeleteItem")
_COMPARED = ("Item", "Attributes", "Items", "Count", "ScannedCount", "LastEvaluatedKey", "Responses")
_VALUES = ("TableName", "Key", "Item", "ExpressionAttributeValues", "ExclusiveStartKey", "RequestItems")
"""Parameters with other values in each call. They do not make a request new."""
_MOST_ITEMS = 200
"""Most items of a table that is copied into moto; copying more would cost more time than the comparison is
worth.
"""
_ACCEPTED_BY_MOTO = ("{'N': '1E126'}", "{'N': ' 1'}")
"""Numbers that DynamoDB refuses, in the form of a request."""
Images = Mapping[str, list[Item]]
"""Items by the name of their table."""

_ask: Callable[..., Any] = BaseClient._make_api_call  # type: ignore[attr-defined] # before a test replaces it
_lock = threading.Lock()
_seen: set[object] = set()


@contextmanager
def compared_with_moto() -> Iterator[list[str]]:
    """Compare requests with moto until the block ends. Yields the list that the differences are added to."""
    differences: list[str] = []
    answer = InMemoryDynamoDB._make_api_call

    def call(double: InMemoryDynamoDB, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        before = _written(double, name, request)
        error: ClientError | None = None
        reply: dict[str, Any] = {}
        try:
            reply = answer(double, name, request)
        except ClientError as raised:
            error, reply = raised, dict(raised.response)
        with _lock:
            if _is_new(name, request, reply):
                items = _images_of(double, request) if name in _READS else before
                differences.extend(_differences(double, name, request, items, reply))
        if error is not None:
            raise error
        return reply

    InMemoryDynamoDB._make_api_call = call  # type: ignore[method-assign, assignment]
    try:
        yield differences
    finally:
        InMemoryDynamoDB._make_api_call = answer  # type: ignore[method-assign]


def _is_new(name: str, request: Mapping[str, Any], reply: Mapping[str, Any]) -> bool:
    # DynamoDB decides which items are in a segment.
    if name not in (*_READS, *_WRITES, _BATCH) or "Segment" in request:
        return False
    # Moto ignores the deletion at a key with an empty text, and reports no error.
    if name == "DeleteItem" and {"S": ""} in request["Key"].values():
        return False
    if "Error" in reply and any(number in repr(request) for number in _ACCEPTED_BY_MOTO):
        return False
    # Moto looks for a key of any length.
    if name == "Query" and "Error" in reply and len(repr(request)) > KEY_BYTES[0]:
        return False
    # Moto writes the entries of a request that DynamoDB rejects as a whole.
    if name == _BATCH and "Error" in reply:
        return False
    shape = {option: value for option, value in request.items() if option not in _VALUES}
    inner = [
        sorted(each) if name == "BatchGetItem" else [sorted(entry) for entry in each]
        for each in request.get("RequestItems", {}).values()
    ]
    look = repr((name, shape, inner, reply.get("Error", {}).get("Code"), sorted(reply)))
    if look in _seen:
        return False
    _seen.add(look)
    return True


def _written(double: InMemoryDynamoDB, name: str, request: Mapping[str, Any]) -> Images:
    """Return the items at the keys that a request writes, or no items for a request that reads."""
    if name == _BATCH:
        return _images_of(double, request)
    return _item(double, request) if name in _WRITES else {}


def _item(double: InMemoryDynamoDB, request: Mapping[str, Any]) -> Images:
    """Return the item at the key that a request writes, or only the table if the key is invalid."""
    name = request["TableName"]
    if name not in double.tables:
        return {}
    key = request.get("Key") or request["Item"]
    keys = double.tables[name].keys
    try:
        item = double.image(name, {each: key[each] for each in keys if each in key})
    except Refusal:
        item = None
    return {name: [item] if item else []}


def _images_of(double: InMemoryDynamoDB, request: Mapping[str, Any]) -> Images:
    names = request["RequestItems"] if "RequestItems" in request else [request["TableName"]]
    return {each: list(double.tables[each].items.values()) for each in names if each in double.tables}


def _differences(
    double: InMemoryDynamoDB, name: str, request: Mapping[str, Any], items: Images, reply: Mapping[str, Any]
) -> Iterator[str]:
    if sum(map(len, items.values())) > _MOST_ITEMS:
        return
    with mock_aws(), others():
        try:
            theirs, left = _asked_of_moto(double, name, request, items)
        except KeyError:
            return  # Moto fails on an undefined alias.
    if _said(reply) != _said(theirs):
        yield f"{name} {dict(request)} answers {_said(reply)}; moto: {_said(theirs)}"
    after = _written(double, name, request)
    if after and _in_order(after) != _in_order(left):
        yield f"{name} {dict(request)} leaves {after}; moto: {left}"


def _asked_of_moto(
    double: InMemoryDynamoDB, name: str, request: Mapping[str, Any], items: Images
) -> tuple[Mapping[str, Any], Images]:
    """Return moto's response, and the contents of moto's tables afterwards."""
    client = _moto_client()
    try:
        for table, each in items.items():
            _ask(client, "CreateTable", double.tables[table].definition)
            for item in each:
                _ask(client, "PutItem", {"TableName": table, "Item": item})
        try:
            reply = _ask(client, name, dict(request))
        except ClientError as raised:
            reply = raised.response
        return reply, {table: _ask(client, "Scan", {"TableName": table})["Items"] for table in items}
    finally:
        for table in items:
            _ask(client, "DeleteTable", {"TableName": table})


def _said(reply: Mapping[str, Any]) -> Any:
    """Return the part of a response that is compared.

    For an error it is the code, because DynamoDB does not promise the texts of messages.
    """
    compared = {name: reply[name] for name in _COMPARED if name in reply}
    return reply.get("Error", {}).get("Code"), _comparable(compared)


def _in_order(images: Images) -> Any:
    return {table: sorted(map(_comparable, items), key=repr) for table, items in images.items()}


def _comparable(value: Any) -> Any:
    """Return a value in which equal numbers are equal, and sets are sorted."""
    match value:
        case {"N": str(number), **others} if not others:
            return Decimal(number)
        case {"SS": list(several), **others} | {"NS": list(several), **others} if not others:
            return sorted(several)
        case dict():
            return {name: _comparable(each) for name, each in value.items()}
        case list():
            return [_comparable(each) for each in value]
    return value


@cache
def _moto_client() -> Any:
    return botocore.session.Session().create_client("dynamodb", region_name="us-east-1")
