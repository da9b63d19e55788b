"""Divides the statements of IAM policies into as many documents as IAM's size limit requires."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

LIMIT = 6_144
"""Maximum number of characters of a managed policy, without spaces:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html."""

Conditions = tuple[tuple[str, str, tuple[str, ...]], ...]
"""Operator, key and values of each condition."""


@dataclass(frozen=True, order=True)
class Statement:
    """Permission for `actions` on `resources`, or a denial that overrides all permissions."""

    resources: tuple[str, ...]
    conditions: Conditions
    actions: tuple[str, ...] = field(compare=False)
    denied: bool = False

    def body(self) -> dict[str, Any]:
        """Return the statement in the JSON form of IAM."""
        conditions: dict[str, dict[str, list[str]]] = {}
        for operator, key, values in self.conditions:
            conditions.setdefault(operator, {})[key] = [*values]
        return {
            "Effect": "Deny" if self.denied else "Allow",
            "Action": [*self.actions],
            "Resource": [*self.resources],
            **({"Condition": conditions} if conditions else {}),
        }


def size(document: Mapping[str, Any]) -> int:
    """Return the size that counts against the limit. Values in these documents contain no spaces."""
    return len(json.dumps(document, separators=(",", ":")))


def documents(statements: Iterable[Statement]) -> list[dict[str, Any]]:
    """Return policies that together contain all of `statements`, each within the limit. A single statement is
    far smaller than the limit."""
    filled: list[list[Any]] = []
    for statement in statements:
        body = statement.body()
        if not filled or size(_document([*filled[-1], body])) > LIMIT:
            filled.append([])
        filled[-1].append(body)
    return [_document(bodies) for bodies in filled]


def _document(statements: list[Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": statements}
