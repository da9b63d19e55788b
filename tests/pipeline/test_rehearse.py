"""`mailroom rehearse` on the running stage: all is well, and with trouble switched on it says where not."""

import json
from base64 import b64decode
from typing import Any

from mailroom_ops.rehearse.rehearsal import GIF, PDF
from tests.support.pipeline.campaign import operator
from tests.support.pipeline.shared import Pipeline


def rehearsed(pipeline: Pipeline, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the report."""
    answer = operator(pipeline, "rehearse", "--stage", "local", "--json", *options)
    return answer.returncode, json.loads(answer.stdout)


def test_on_a_stage_that_works_every_step_is_as_it_should_be_and_nobody_is_named(pipeline: Pipeline) -> None:
    code, report = rehearsed(pipeline)
    assert [
        (each["step"], each["found"]) for each in report["steps"] if each["found"] != each["wanted"]
    ] == []
    assert (code, report["ok"], len(report["steps"])) == (0, True, 9)
    first = report["steps"][0]
    assert 0 < first["accepted_seconds"] < first["delivered_seconds"]
    assert "@" not in json.dumps(report)
    sent = [each["content"] for each in pipeline.inbox() if each["to"].startswith("success+")]
    (attached,) = [each["attachments"] for each in sent if each["attachments"]]
    assert {each["name"]: b64decode(each["url"].partition(",")[2]) for each in attached} == {
        "dot.gif": GIF,
        "empty.pdf": PDF,
    }


def test_where_ses_refuses_the_report_names_the_steps_that_went_wrong(pipeline: Pipeline) -> None:
    pipeline.trouble("ses", {"throttled": 1.0})
    try:
        code, report = rehearsed(pipeline, "--seconds", "2")
    finally:
        pipeline.trouble("ses", {})
    wrong = {each["step"] for each in report["steps"] if each["found"] != each["wanted"]}
    assert (code, report["ok"]) == (1, False)
    assert "a mail with a PDF and an image in its HTML" in wrong
    assert "a mail for an hour from now, cancelled" not in wrong
