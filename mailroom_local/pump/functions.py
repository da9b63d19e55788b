"""Invokes the functions of the stage, as Lambda's pollers and EventBridge do."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mailroom_local.aws import LocalSession, patient

FUNCTION_SECONDS = 900.0 + 30.0  # the longest time-out of a function, with a margin
CONNECTIONS = 50
TROUBLE = (ClientError, BotoCoreError)
TROUBLE_SECONDS = 1.0


@dataclass(frozen=True)
class Invoked:
    """Result of an invocation. `error` is Lambda's function error, such as Unhandled. `refused` is True if
    the function did not run."""

    request_id: str = ""
    payload: Any = None
    error: str | None = None
    refused: bool = False

    @property
    def reported(self) -> list[str]:
        """Identifiers of the records that the function reports as failed; an empty string for a missing
        identifier."""
        failures = self.payload.get("batchItemFailures") if isinstance(self.payload, dict) else None
        return [
            failure.get("itemIdentifier") or "" if isinstance(failure, dict) else ""
            for failure in failures or ()
        ]


class Functions:
    def __init__(self, url: str) -> None:
        self._lambda = LocalSession().client(
            "lambda", endpoint_url=url, config=patient(CONNECTIONS, FUNCTION_SECONDS)
        )

    def invoke(self, function: str, event: str) -> Invoked:
        """Invoke the function with an event in JSON, and wait for its end. AWS errors are returned as
        `refused`."""
        try:
            answer = self._lambda.invoke(FunctionName=function, Payload=event)
            payload = answer["Payload"].read()
        except TROUBLE as trouble:
            print(f"{function} did not run: {trouble}", flush=True)
            return Invoked(refused=True)
        request_id = answer["ResponseMetadata"]["RequestId"]
        return Invoked(request_id, json.loads(payload or b"null"), answer.get("FunctionError"))

    def start(self, function: str, event: str) -> None:
        """Invoke the function asynchronously. Like Lambda, the emulator repeats an invocation that fails, as
        often as the function's settings of asynchronous invocations allow."""
        try:
            self._lambda.invoke(FunctionName=function, Payload=event, InvocationType="Event")
        except TROUBLE as trouble:
            print(f"{function} was not started: {trouble}", flush=True)


def retry_until_ok(call: Callable[[], object]) -> None:
    """Repeat `call` until it succeeds, with a pause after each failure."""
    while True:
        try:
            call()
        except TROUBLE as trouble:
            print(f"trying again: {trouble}", flush=True)
            time.sleep(TROUBLE_SECONDS)
        else:
            return
