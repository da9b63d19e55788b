"""`mailroom rehearse` on the running stage: all is well, and with trouble switched on it says where not."""

import json
from base64 import b64decode
from typing import Any

from mailroom_local.aws import ACCOUNT
from mailroom_ops.deploying.rehearsal import GIF, PDF
from tests.support.pipeline.campaign import operator
from tests.support.pipeline.shared import Pipeline


def rehearsed(pipeline: Pipeline, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the report."""
    answer = operator(pipeline, "rehearse", "--stage", "local", "--json", *options)
    return answer.exit_code, json.loads(answer.stdout)


def wrong(report: dict[str, Any]) -> dict[str, str]:
    """The outcomes of the steps that went wrong."""
    steps = report["steps"]
    return {step["step"]: step["outcome"] for step in steps if step["outcome"] != step["expected"]}


def test_every_step_of_a_rehearsal_on_a_healthy_stage_succeeds_and_the_report_contains_no_address(
    pipeline: Pipeline,
) -> None:
    code, report = rehearsed(pipeline)
    assert wrong(report) == {}
    assert (code, report["ok"], len(report["steps"])) == (0, True, 9)
    first, second, *_ = (step["seconds"] for step in report["steps"])
    # Seconds are rounded to hundredths. A warm sender claims a mail, and the simulator accepts it and sends
    # an event, within the same hundredth.
    assert 0 < first["claimed"] <= first["accepted"] <= first["delivered"]
    assert 0 < second["claimed"] <= second["accepted"] <= second["bounced"]
    text = json.dumps(report)
    assert "@" not in text
    assert ACCOUNT not in text
    sent = [each["content"] for each in pipeline.inbox() if each["to"].startswith("success+")]
    (attached,) = [each["attachments"] for each in sent if each["attachments"]]
    assert {each["name"]: b64decode(each["url"].partition(",")[2]) for each in attached} == {
        "dot.gif": GIF,
        "empty.pdf": PDF,
    }


def test_the_report_of_a_rehearsal_names_the_failed_steps_if_ses_throttles_its_mails(
    pipeline: Pipeline,
) -> None:
    pipeline.trouble("ses", {"throttled": 1.0})
    try:
        code, report = rehearsed(pipeline, "--seconds", "0.2")
    finally:
        pipeline.trouble("ses", {})
    assert (code, report["ok"]) == (1, False)
    assert "a mail with a PDF and an image in its HTML" in wrong(report)
    assert "a mail for an hour from now, cancelled" not in wrong(report)
