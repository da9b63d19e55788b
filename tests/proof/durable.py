"""Counts how mails end with AWS's SDK for durable functions, on the SDK's local runner.

A dispatcher starts one durable execution for each message, with the message's name. The execution's only step
sends the mail. A stop kills the process that makes the call: no later call of that process reaches the
outside. Like Lambda, the runner then invokes the function again.
"""

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from aws_durable_execution_sdk_python import DurableContext, durable_execution
from aws_durable_execution_sdk_python.config import StepConfig, StepSemantics
from aws_durable_execution_sdk_python.execution import InvocationStatus
from aws_durable_execution_sdk_python.lambda_service import OperationType
from aws_durable_execution_sdk_python.retries import RetryPresets
from aws_durable_execution_sdk_python_testing.executor import Executor
from aws_durable_execution_sdk_python_testing.runner import DurableFunctionTestRunner

from tests.proof.counting import NAMES, count
from tests.support.faults.outside import Clock, Outside, Queues, Ses, Stopped

QUEUE = "https://sqs/mail"
VISIBILITY, MAX_RECEIVES = 360.0, 12
"""Values of tests.support.faults.world, which needs packages that this environment lacks."""
AT_MOST_ONCE = StepConfig(
    retry_strategy=RetryPresets.none(), step_semantics=StepSemantics.AT_MOST_ONCE_PER_RETRY
)
"""Settings that the SDK's documentation advises for a step that must not run twice."""


class Died(Exception):
    """Exception that reports to the runner that a process died."""


class Process:
    """Process of an invocation. After its death it makes no call to the outside."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._lock = threading.Lock()
        self.dead = False

    def call(self, name: str, operation: Callable[..., Any], **arguments: Any) -> Any:
        with self._lock:
            if self.dead:
                raise Died
            try:
                return self._outside.call(name, operation, **arguments)
            except Stopped as stopped:
                self.dead = True
                raise Died from stopped


class Checkpoints:
    """Wrapper of the SDK's checkpoint service, which makes each checkpoint a call to the outside."""

    def __init__(self, service: Any, process: Process) -> None:
        self._service, self._process = service, process
        self.tried = threading.Event()
        """Set after the first checkpoint: the step has begun, or the process has died."""

    def checkpoint(self, **arguments: Any) -> Any:
        try:
            return self._process.call("checkpoint", self._service.checkpoint, **arguments)
        finally:
            self.tried.set()


class Durable:
    """Queue with a dispatcher and an execution for each message."""

    def __init__(self, step: StepConfig | None = None) -> None:
        self.outside, self.clock = Outside(), Clock()
        self.ses = Ses(self.clock)
        self.queues = Queues(self.clock, VISIBILITY, MAX_RECEIVES)
        self._step = step
        self._executions: dict[str, InvocationStatus | None] = {}
        """State of each execution by name. None means that the execution waits for its first invocation."""
        for name in NAMES:
            self.queues.put(QUEUE, name)

    def deliver(self) -> None:
        records, process = self.queues.receive(QUEUE), Process(self.outside)
        try:
            for record in records:
                process.call("invoke", self._invoke, execution=record["body"])
            self.queues.settle(QUEUE, records, {"batchItemFailures": []})
        except Died:
            pass  # the records come back after their visibility time-out
        for name, end in self._executions.items():
            self._executions[name] = end or self._execute(name)

    def _invoke(self, *, execution: str) -> None:
        """Start an execution. As with Lambda, a second start of the same name is ignored."""
        self._executions.setdefault(execution, None)

    def _execute(self, name: str) -> InvocationStatus:
        with DurableFunctionTestRunner(self._function) as runner:
            return runner.run(json.dumps(name), execution_name=name).status

    def _function(self, event: Any, context: Any) -> Any:
        """Run an invocation in a new process."""
        process = Process(self.outside)
        checkpoints = Checkpoints(event.service_client, process)
        operations = event.initial_execution_state.operations
        step_began = any(operation.operation_type is OperationType.STEP for operation in operations)

        @durable_execution  # type: ignore[untyped-decorator]
        def handler(name: Any, durable: DurableContext) -> Any:
            return durable.step(lambda _step: send(name), name="send", config=self._step)

        def send(name: str) -> str:
            if not step_began:
                # The SDK runs the step without waiting for the first checkpoint. The mail waits for it here,
                # because in reality sending a mail takes longer than a checkpoint.
                checkpoints.tried.wait()
            ses = process.call("send_email", self.ses.send_email, Destination={"ToAddresses": [name]})
            return str(ses["MessageId"])

        answer = handler(replace(event, service_client=checkpoints), context)
        if process.dead:
            raise Died
        return answer

    def finish(self) -> None:
        while (due := self.queues.next_visible()) is not None:
            self.clock.now = max(self.clock.now, due)
            self.deliver()

    def sends(self) -> Counter[str]:
        return Counter(request["Destination"]["ToAddresses"][0] for request in self.ses.accepted)

    def dead_letters(self) -> set[str]:
        return {letter.body for letter in self.queues.dead[QUEUE]}

    def failures(self) -> dict[str, bool]:
        """Return the failures. All are unknown, because an interrupted step may have sent its mail."""
        return {name: True for name, end in self._executions.items() if end is InvocationStatus.FAILED}


if __name__ == "__main__":
    logging.disable()
    Executor.RETRY_BACKOFF_SECONDS = 0  # the runner would wait in real time before it invokes again
    variants: dict[str, Callable[[], Durable]] = {
        "durable": Durable,
        "durable_at_most_once": partial(Durable, AT_MOST_ONCE),
    }
    # Many runners work at once, because a runner mostly waits.
    print(json.dumps({name: count(begin, at_once=32) for name, begin in variants.items()}))
