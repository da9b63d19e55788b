"""A stage's account at Resend: whose it is, and its own list, which lifting a recipient asks as well."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from mailroom.errors import OutcomeUnknown
from mailroom_local.providers.http import SimulatorServer
from mailroom_local.providers.inbox import InboxStore
from mailroom_local.providers.resend_mail import ResendSimulator
from mailroom_ops.people.suppression_lists import Lists
from mailroom_ops.shared.resend_account import mail_providers
from tests.support.local.served import served
from tests.support.ops.shared import LambdaDouble, Recorded


class MailFunctions(LambdaDouble):
    """Lambda client of a stage with such a mail sender, if it has variables."""

    def __init__(self, **variables: str) -> None:
        self._variables = variables

    def environment_of(self, name: str) -> dict[str, str] | None:
        if name == "send-mail-fallback":
            return {"CONFIGURATION_SET": "mailroom-dev", "OTHER_PROVIDER": "{}"}
        return self._variables if name == "send-mail" and self._variables else None


def session(ses: Any = None, **variables: str) -> Any:
    """Return a session whose stage dev has such a mail sender; without variables it has none. `ses`: client
    of SES."""
    clients = {"lambda": MailFunctions(**variables), "sesv2": ses}
    return SimpleNamespace(client=clients.get)


@pytest.fixture
def simulator() -> ResendSimulator:
    return ResendSimulator(InboxStore())


@pytest.fixture
def resend_session(simulator: ResendSimulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr("mailroom_ops.shared.resend_account.credentials", lambda *_: ["re_local"])
    with served(SimulatorServer(0, simulator)) as url:
        yield session(RESEND_SECRET_ARN="arn", RESEND_BASE_URL=f"{url}/resend")


@pytest.mark.parametrize("variables", [{}, {"CONFIGURATION_SET": "mailroom-dev"}])
def test_a_stage_that_sends_mail_by_ses_does_not_have_an_account_at_resend(variables: dict[str, str]) -> None:
    assert mail_providers(session(**variables), "dev") == {"SES": None}


def test_people_allow_removes_a_recipient_from_the_suppression_list_of_resend(
    resend_session: Any, simulator: ResendSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom_ops.people.suppression_lists.Suppressions", lambda *_: None)
    monkeypatch.setattr("mailroom_ops.people.suppression_lists.Deeds", lambda *_: Recorded())
    lists = Lists(resend_session, "dev")
    simulator.suppressed = {"v@example.com": "bounced", "ada@example.com": "bounced"}
    assert lists.provider == "Resend"
    assert lists.lift_from_provider("V <v@example.com>") == "lifted"
    assert lists.lift_from_provider("V <v@example.com>") == "not_listed"
    assert simulator.suppressed == {"ada@example.com": "bounced"}


class NotListed(Exception):
    """Error of SES: the address is not on its list."""


class SesWithList:
    """Client of SES with a list of its own."""

    exceptions = SimpleNamespace(NotFoundException=NotListed)

    def __init__(self) -> None:
        self.listed = ["v@example.com"]

    def delete_suppressed_destination(self, **request: str) -> None:
        if request["EmailAddress"] not in self.listed:
            raise NotListed
        self.listed.remove(request["EmailAddress"])


def test_people_allow_removes_a_recipient_from_the_suppression_lists_of_both_providers(
    resend_session: Any, simulator: ResendSimulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom_ops.people.suppression_lists.Suppressions", lambda *_: None)
    monkeypatch.setattr("mailroom_ops.people.suppression_lists.Deeds", lambda *_: Recorded())
    ses, variables = SesWithList(), resend_session.client("lambda").environment_of("send-mail")
    lists = Lists(session(ses, **variables, OTHER_PROVIDER="{}"), "dev")
    assert lists.provider == "Resend and SES"
    simulator.suppressed = {"v@example.com": "bounced"}
    assert lists.lift_from_provider("v@example.com") == "lifted"
    assert (simulator.suppressed, ses.listed) == ({}, [])
    ses.listed = ["v@example.com"]
    assert lists.lift_from_provider("v@example.com") == "lifted"
    assert lists.lift_from_provider("v@example.com") == "not_listed"
    monkeypatch.setattr("mailroom_ops.shared.resend_account.credentials", lambda *_: ["another key"])
    ses.listed = ["v@example.com"]
    fresh = Lists(session(ses, **variables, OTHER_PROVIDER="{}"), "dev")
    with pytest.raises(OutcomeUnknown, match="answered 400"):
        fresh.lift_from_provider("v@example.com")
    assert ses.listed == [], "the other provider is asked as well"


def test_an_error_response_of_resend_makes_the_outcome_of_a_lift_unknown(
    resend_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailroom_ops.shared.resend_account.credentials", lambda *_: ["another key"])
    account = mail_providers(resend_session, "dev")["Resend"]
    assert account is not None
    with pytest.raises(OutcomeUnknown, match="answered 400"):
        account.lift("ada@example.com")
