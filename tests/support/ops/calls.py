"""Counts of the calls to AWS by operation, for tests that limit them."""

from collections import Counter
from typing import Any

import pytest
from botocore.client import BaseClient

from tests.support.dynamodb import InMemoryDynamoDB

_OF_FUNCTIONS = {
    "get_function_configuration": "GetFunctionConfiguration",
    "list_event_source_mappings": "ListEventSourceMappings",
    "paginate": "ListEventSourceMappings",
}
"""Operations by the methods of the double of the client of Lambda."""


class CountedCalls(Counter[str]):
    """Calls by operation, since the creation. Each page of a paginator is a call."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, functions: Any) -> None:
        """Count the calls of all clients; `functions` is the double of the client of Lambda."""
        super().__init__()
        for kind in (BaseClient, InMemoryDynamoDB):
            monkeypatch.setattr(kind, "_make_api_call", self._counting(vars(kind)["_make_api_call"]))
        for name, operation in _OF_FUNCTIONS.items():
            monkeypatch.setattr(functions, name, self._counting(getattr(functions, name), operation))

    def _counting(self, call: Any, operation: str = "") -> Any:
        def counted(*arguments: Any, **request: Any) -> Any:
            self[operation or arguments[1]] += 1
            return call(*arguments, **request)

        return counted
