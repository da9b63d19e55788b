"""Rights of the functions, by which the calls of the unit tests are judged."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any

import pytest
from botocore.client import BaseClient

from mailroom.campaigns.bad_runs import BadRuns
from mailroom.campaigns.collector import Collector
from mailroom.campaigns.composer import Composer
from mailroom.channels.fax.retry_mover import RetryMover
from mailroom.dead_letters.inspector import DeadLetterInspector
from mailroom.delivery.worker import Worker
from mailroom.dispatch.dispatcher import Dispatcher
from mailroom.dispatch.release import Release
from mailroom.feedback.consumer import Feedback
from mailroom.outcomes import Outcomes
from mailroom.providers.resend.webhook import ResendMailEvents
from mailroom.providers.twilio.callbacks import TwilioCallbacks
from mailroom.search.indexer import Indexer
from mailroom.unsubscribe.application import Unsubscribe
from mailroom_local.aws import ACCOUNT, REGION
from tests.support.dynamodb import InMemoryDynamoDB
from tests.support.pipeline.recorder.called import names_of
from tests.support.pipeline.rights import Grant, grants_of, requests_of
from tests.support.stacks.resolved import Resolver
from tests.support.stacks.templates import PSEUDO, Templates
from tests.support.unit.shared import REGION as TESTED_REGION
from tests.support.unjudged import others_act

METHODS: Mapping[str, tuple[type, ...]] = {
    "answer": (ResendMailEvents, TwilioCallbacks, Unsubscribe),
    "dispatch": (Dispatcher,),
    "dry_run": (Collector, Composer),
    "pause": (BadRuns,),
    "handle": (
        *(Collector, Composer, DeadLetterInspector, Feedback, Indexer, Outcomes, Release, RetryMover),
        Worker,
    ),
}
"""Classes whose method of that name handles the event of a function."""
HANDLERS: Mapping[type, str] = {
    Collector: "collect",
    Composer: "compose",
    DeadLetterInspector: "dead_letters",
    Dispatcher: "dispatch",
    Feedback: "feedback",
    BadRuns: "index_messages",
    Indexer: "index_messages",
    Outcomes: "outcomes",
    Release: "release",
    ResendMailEvents: "resend_mail_events",
    RetryMover: "retry_fax",
    TwilioCallbacks: "twilio_callbacks",
    Unsubscribe: "unsubscribe",
}
"""Handlers, which are files in lambdas/, by the class that each uses. `Worker` has a handler a channel."""
DEPLOYED = {"mailroom-test": "mailroom-dev", "123456789012": ACCOUNT, TESTED_REGION: REGION}
"""Names in the synthesized stages, by the names in unit tests."""
SINGLE_RECORDS = frozenset({"send_webhook", "send_fax"})
"""Handlers whose mapping hands over one record at a time. Tests give them several, which are claimed
together."""
JUDGED = ("dynamodb", "sqs")
"""Services whose resources have the same names in each stage. Senders, secrets and files of audiences are
named by a stage's settings, so the tests of the pipeline judge those."""


class Judge:
    """Judge of the calls that a handler makes in a test: each must be granted to a function of the
    handler."""

    def __init__(self, stages: Iterable[Templates]) -> None:
        self._grants: dict[str, list[Grant]] = {}
        for stage in stages:
            for handler, grants in _grants_by_handler(stage):
                self._grants.setdefault(handler, []).extend(grants)
        self._granted: set[tuple[str, str, str]] = set()

    def refusals(
        self, handler: str, service: str, operation: str, parameters: Mapping[str, Any]
    ) -> list[str]:
        """Return the requests of a call that no function of the handler may make."""
        if others_act() or service not in JUDGED or handler not in self._grants:
            return []
        names = names_of(parameters)
        call = (handler, operation, repr(names))
        if call in self._granted:
            return []
        requests = {
            replace(each, resource=_deployed(each.resource))
            for each in requests_of(handler, service, operation, names)
            if handler not in SINGLE_RECORDS or each.action != "dynamodb:PartiQLInsert"
        }
        grants = self._grants[handler]
        refused = sorted(str(each) for each in requests if not any(grant.allows(each) for grant in grants))
        if not refused:
            self._granted.add(call)
        return refused


def _grants_by_handler(stage: Templates) -> Iterator[tuple[str, list[Grant]]]:
    resolver = Resolver(stage, {**PSEUDO, "AWS::Region": REGION, "AWS::AccountId": ACCOUNT})
    for stack, template in stage.stacks.items():
        for function in template.all("Lambda::Function"):
            handler = function["Handler"].removesuffix(".handler")
            policies = [
                {"Statement": [each for each in policy["Statement"] if not _of_network(each)]}
                for policy in resolver.policies(stack, function["Role"]["Fn::GetAtt"][0])
            ]
            yield handler, [*grants_of(handler, policies)]


def _of_network(statement: Mapping[str, Any]) -> bool:
    """Return whether a statement is about the interfaces by which Lambda connects a function to a VPC."""
    return str(statement["Action"][0]).startswith("ec2:")


def _deployed(resource: str) -> str:
    for tested, deployed in DEPLOYED.items():
        resource = resource.replace(tested, deployed)
    return resource


def handler_of(worker: Any) -> str:
    """Return the handler of an object that handles the events of a function; empty for a worker of mails,
    because the tests of every sender use it with an adapter that no function has."""
    if not isinstance(worker, Worker):
        return HANDLERS[type(worker)]
    delivery: Any = worker._delivery
    channel = delivery.settings.channel
    return "" if channel == "mail" else f"send_{channel}"


class Watch:
    """Calls of the handler that runs, each judged."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._handlers: list[str] = []
        self._refused: list[str] = []

    def see(self, service: str, operation: str, parameters: Mapping[str, Any]) -> None:
        """Judge a call, if a handler runs."""
        if self._handlers:
            self._refused += self._judge.refusals(self._handlers[-1], service, operation, parameters)

    def running(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method of a handler, watched."""

        @wraps(method)
        def run(worker: Any, *arguments: Any) -> Any:
            self._handlers.append(handler_of(worker))
            try:
                return method(worker, *arguments)
            finally:
                self._handlers.pop()
                self._fail()

        return run

    def _fail(self) -> None:
        sentence, self._refused = "; ".join(dict.fromkeys(self._refused)), []
        if sentence:
            pytest.fail(f"{sentence}: no role allows that. Grant it where the stack makes the function")


@contextmanager
def judged(judge: Judge) -> Iterator[None]:
    """Judge every call to AWS that a handler makes. A call that its functions may not make ends the test."""
    watch = Watch(judge)
    botocore, double = BaseClient._emit_api_params, InMemoryDynamoDB._make_api_call  # type: ignore[attr-defined]

    def by_botocore(client: Any, api_params: Any, operation_model: Any, context: Any) -> Any:
        watch.see(operation_model.service_model.service_name, operation_model.name, api_params)
        return botocore(client, api_params, operation_model, context)

    def by_double(client: Any, name: str, request: Mapping[str, Any]) -> Any:
        watch.see("dynamodb", name, request)
        return double(client, name, request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_emit_api_params", by_botocore)
        patch.setattr(InMemoryDynamoDB, "_make_api_call", by_double)
        for name, owners in METHODS.items():
            for owner in owners:
                patch.setattr(owner, name, watch.running(getattr(owner, name)))
        yield
