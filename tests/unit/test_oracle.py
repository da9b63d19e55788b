"""Comparison of `make oracle`, with the double on both sides: the calls reach the verbs, and a difference is
reported."""

from collections.abc import Mapping
from typing import Any

from tests.oracle.steps import VERBS, Comparison, Side, random_calls
from tests.support.dynamodb import InMemoryDynamoDB
from tests.support.unit.shared import FakeClock

CALLS = 2_000
BESIDE_MESSAGES = {
    *("ids_on_line", "rows", "contents", "lease", "lease, back"),
    *("budget, ask", "budget, join", "budget, move_line", "budget, close_line"),
}
"""Verbs that read messages, or write other tables."""


def first_difference(other: InMemoryDynamoDB) -> tuple[str, Comparison]:
    """The double and another; the first difference comes with what was compared."""
    clock = FakeClock()
    comparison = Comparison(Side("one", InMemoryDynamoDB(), clock), Side("other", other, clock))
    for _, (call, seconds) in zip(range(CALLS), random_calls(1), strict=False):
        clock.advance(seconds)
        if differs := comparison.make(call):
            return differs, comparison
    return "", comparison


def test_the_random_calls_of_the_oracle_use_every_ledger_operation_that_changes_messages() -> None:
    differs, comparison = first_difference(InMemoryDynamoDB())
    assert not differs
    assert {verb for verb in VERBS if not comparison.changed[verb]} == BESIDE_MESSAGES


def test_the_oracle_reports_a_database_double_that_ignores_conditions_as_different() -> None:
    class Unconditional(InMemoryDynamoDB):
        def _make_api_call(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
            if name == "UpdateItem":
                request = {**request, "ConditionExpression": "attribute_not_exists(nothing)"}
            return super()._make_api_call(name, request)

    differs, _ = first_difference(Unconditional())
    assert "one answers" in differs or "one has" in differs
