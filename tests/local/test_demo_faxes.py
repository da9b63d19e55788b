"""The demo tells right from wrong about faxes: each kind of failure is seen and named."""

from typing import Any

import pytest

from local.demo.checks.faxes import FaxCheck, check_faxes
from local.demo.checks.messages import Ledger
from local.demo.scenarios import faxes as fax_scenarios
from local.demo.scenarios.faxes import FaxScenario
from local.providers.fax import course_of, refusal_of

MOST = 3
ONE, OTHER = "+14155550130", "+14155550131"
FIRST, SECOND = FaxScenario("first", ONE, way="queue"), FaxScenario("second", ONE, way="queue")
BUSY = FaxScenario("busy", OTHER, fails=MOST, delivered=False, reason="busy")
FAXES = [FIRST, SECOND, BUSY]
SENT: dict[str, Any] = {"status": "sent", "completedAt": 1}
FAILED: dict[str, Any] = {"status": "failed", "completedAt": 1, "error": {"code": "busy", "message": "busy"}}
LEDGER: dict[tuple[str, str], dict[str, Any]] = {FIRST.key: SENT, SECOND.key: SENT, BUSY.key: FAILED}


def call(fax: FaxScenario, created: float, status: str = "delivered", **more: Any) -> dict[str, Any]:
    """A line of the provider's log: a fax that took a second."""
    return {
        "to": fax.line,
        "media_url": f"https://example.com/faxes/{fax.id}.pdf?signature=x",
        "status": status,
        "created": created,
        "ended": created + 1,
        "media_ok": None,
        "overlaps": [],
        **more,
    }


LOG = [call(FIRST, 0), call(SECOND, 1), *(call(BUSY, at, "busy") for at in (0, 5, 10))]


def check(log: list[dict[str, Any]], ledger: Ledger = LEDGER, faxes: list[FaxScenario] = FAXES) -> FaxCheck:
    return check_faxes(faxes, log, ledger, MOST, seconds=12)


def test_all_as_it_should_be() -> None:
    result = check(LOG)
    assert (result.faxes, result.numbers, result.delivered, result.failed, result.attempts) == (3, 2, 2, 1, 5)
    assert (result.lines_in_order, result.most_at_once, result.sent_twice, result.lost) == (1, 1, 0, 0)
    assert (result.longest, result.failures) == (1, [])
    assert result.reasons == [{"id": "busy", "code": "busy", "message": "busy"}]


def test_two_faxes_at_once_to_a_number_are_seen() -> None:
    result = check([call(FIRST, 0), call(SECOND, 0.9, overlaps=["first"]), *LOG[2:]])
    assert result.most_at_once == 2
    assert result.failures == [f"A fax to {ONE} met 1 other faxes on its line."]


def test_another_order_than_the_queues_is_seen() -> None:
    result = check([call(SECOND, 0), call(FIRST, 1), *LOG[2:]])
    assert result.lines_in_order == 0
    assert "another order" in result.failures[0]


def test_a_fax_delivered_twice_is_seen() -> None:
    result = check([*LOG, call(FIRST, 20)])
    assert result.sent_twice == 1
    assert "first was delivered 2 times." in result.failures


def test_a_fax_that_has_not_ended_in_the_ledger_is_lost() -> None:
    result = check(LOG, LEDGER | {FIRST.key: {"status": "sending"}})
    assert result.lost == 1
    assert "first is lost" in result.failures[0]


def test_too_few_attempts_are_seen() -> None:
    assert "busy was given to the provider 2 times instead of 3." in check(LOG[:-1]).failures


def test_a_fax_that_should_have_failed_is_seen() -> None:
    assert "busy should be failed" in check(LOG, LEDGER | {BUSY.key: SENT}).failures[0]


def test_a_reason_that_names_something_else_is_seen() -> None:
    other = FAILED | {"error": {"code": "invalid", "message": "to: is missing"}}
    assert "does not name 'busy'" in check(LOG, LEDGER | {BUSY.key: other}).failures[0]


def test_a_fax_to_another_number_is_seen() -> None:
    assert any("another number" in each for each in check([call(FIRST, 0, to="+1"), *LOG[1:]]).failures)


def test_a_pdf_that_the_provider_could_not_fetch_is_seen() -> None:
    stored = FaxScenario("first", ONE, payload=True)
    faxes = [stored, SECOND, BUSY]
    assert check([call(stored, 0, media_ok=True), *LOG[1:]], faxes=faxes).failures == []
    assert "could not fetch" in check([call(stored, 0, media_ok=False), *LOG[1:]], faxes=faxes).failures[0]


def test_a_fax_that_nobody_asked_for_is_seen() -> None:
    assert "A provider got eve" in check([*LOG, call(FaxScenario("eve", OTHER), 20)]).failures[0]


def test_the_faxes_are_60_to_12_numbers_and_one_to_none() -> None:
    faxes = fax_scenarios.faxes(20)
    assert len({fax.key for fax in faxes}) == len(faxes)
    assert len([fax for fax in faxes if fax.line]) == 60
    assert {fax.line for fax in faxes if fax.line} == set(fax_scenarios.NUMBERS)
    assert len(fax_scenarios.NUMBERS) == 12


@pytest.mark.parametrize(
    ("line", "courses"),
    [
        (fax_scenarios.BUSY, ["busy", "busy", "busy"]),
        (fax_scenarios.TWICE, ["busy", "busy", "delivered"]),
        (fax_scenarios.SLOW, ["slow"]),
        (fax_scenarios.LOST, ["lost", "delivered"]),
        (fax_scenarios.BROKEN, ["failed", "delivered"]),
        *((line, ["delivered"]) for line in (*fax_scenarios.GOOD, *fax_scenarios.UPSTREAM)),
    ],
)
def test_the_numbers_do_what_the_demo_expects_of_them(line: str, courses: list[str]) -> None:
    assert [course_of(line, nth + 1) for nth in range(len(courses))] == courses
    assert refusal_of(line, 1) is None
    assert refusal_of(fax_scenarios.REFUSING, 9) == "invalid"
    assert refusal_of(fax_scenarios.THROTTLED, 1) == "throttled"
