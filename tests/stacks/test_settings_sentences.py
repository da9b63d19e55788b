"""A wrong setting stops synth with one sentence that names the key and what would be right."""

import sys
from pathlib import Path

import pytest

from mailroom_stacks.app import main as app
from mailroom_stacks.app.application import synthesize
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.queues import LEAST_LEDGER_DAYS, UNPROCESSED_DAYS
from mailroom_stacks.settings.sentences import SettingsError
from mailroom_stacks.settings.times import LOCAL
from tests.support.stacks.refusals import (
    REMOVED,
    SHIPPED,
    STAGES,
    dev_with,
    refusal_of_setting,
    with_settings,
)

MAIL = STAGES["dev"]["channels"]["mail"]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("channels.mail.lanes.bulk.maximum_concurrency", "5", "'5' should be a valid integer."),
        ("channels.mail.lanes.bulk.maximum_concurrency", 1, "1 should be greater than or equal to 2."),
        ("channels.mail.lanes.bulk.share", 2, "2 should be less than or equal to 1."),
        ("channels.mail.lanes.express", {"share": 1}, "'express' should be 'normal' or 'bulk'."),
        ("channels.mail.lanes", 5, "5 should be an object."),
        ("channels.mail.messages_per_second", True, "True should be a valid number."),
        ("channels.Mail", MAIL, "'Mail' should match pattern '^[a-z][a-z0-9]{0,15}$'."),
        ("retention.log_days", 2, "2 should be 1, 7, 14, 30, 90, 180 or 365."),
        ("mail.senders", "a@example.com", "'a@example.com' should be a valid array."),
        ("deployment.tags.owner", 1, "1 should be a valid string."),
        ("stage", "prod", "is not a setting; the section's own key names the stage."),
        ("mail", {"sender": "a@example.com"}, "is missing; add it."),
        ("mail.speed", 1, "is not a setting; correct its name, or remove it."),
        ("channels.mail.handler", REMOVED, "is missing; add it."),
        (
            "channels.mail.handler",
            "send_pigeon",
            "'send_pigeon' is not a handler of Mailroom, and there is no file channels/send_pigeon.py; add "
            "it, or use another handler.",
        ),
    ],
)
def test_the_error_about_a_wrong_value_names_its_setting_and_the_valid_values(
    key: str, value: object, said: str
) -> None:
    named = "mail.senders" if key == "mail" else key
    assert refusal_of_setting(key, value) == f"mailroom.dev.{named}: {said}"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "channels.mail.lanes.bulk.share",
            0.6,
            "channels.mail.lanes: the shares normal 0.5 + bulk 0.6 = 1.1 exceed 1; lower them to 1 in total.",
        ),
        (
            "channels.mail.lanes.bulk.maximum_concurrency",
            1000,
            "channels.mail.lanes.bulk.maximum_concurrency: with 1000 workers, each waits 2000 s between "
            "submits; with this wait, the slowest message needs a time-out of over 2021 s, but Lambda "
            "allows 900; lower it, or raise channels.mail.messages_per_second.",
        ),
        (
            "channels.mail.timeout_seconds",
            20,
            "channels.mail.lanes.normal.maximum_concurrency: with 2 workers, each waits 4 s between "
            "submits; with this wait, the slowest message needs a time-out of over 25 s, but "
            "timeout_seconds is 20; lower it, or raise timeout_seconds or "
            "channels.mail.messages_per_second.",
        ),
        (
            "channels.mail.longest_throttling_seconds",
            172_800,
            "channels.mail.longest_throttling_seconds: leads to 406 receives, which may take 369100 s (the "
            "longest wait or visibility timeout after each); the limit is 259200 s, one day less than the 4 "
            "days after which SQS deletes a message; lower it.",
        ),
        (
            "retention.mailbox_days",
            28,
            "retention.mailbox_days: 28 would lose the item of a message that can still be redelivered; use "
            "29 or more (14 in the fax or another queue + 14 in the dead-letter queue + 1), or null.",
        ),
        (
            "retention.payload_days",
            28,
            "retention.payload_days: 28 would lose the content of a message that can still be redelivered; "
            "use 29 or more (14 in the fax or another queue + 14 in the dead-letter queue + 1).",
        ),
        (
            "channels.mail.lanes.normal",
            REMOVED,
            "channels.mail.lanes.normal: is missing; add it for messages without `lane`.",
        ),
        (
            "channels.fax",
            MAIL,
            "channels.fax: is not allowed in channels; use the section 'fax'.",
        ),
        (
            "channels.mail.handler",
            "send_fax",
            "channels.mail: function 'send-fax' exists; rename the channel or handler.",
        ),
        (
            "channels.pigeon",
            MAIL,
            "channels.pigeon: function 'send-mail' exists; rename the channel or handler.",
        ),
        (
            "channels.feedback",
            MAIL,
            "channels.feedback: queue 'feedback' exists; rename the channel or handler.",
        ),
        (
            "channels.pigeon",
            {**MAIL, "handler": "twilio_callbacks"},
            "channels.pigeon: function 'twilio-callbacks' exists; rename the channel or handler.",
        ),
        (
            "channels.mail",
            {**MAIL, "lanes": {"normal": {"share": 0.5}, "bulk": {"share": 0.5}}},
            "channels.mail.lanes.normal.reserve: is missing; without it, a campaign can use up per_day. Use "
            "0.1, or the share that urgent messages such as codes need.",
        ),
        (
            "channels.sms.per_day",
            [["2026-12-02", 500], ["2026-12-01", 1000]],
            "channels.sms.per_day: must have each date once, in ascending order and in the form "
            '"2026-12-01".',
        ),
        (
            "channels.sms.per_day",
            [["1 December", 500]],
            "channels.sms.per_day: must have each date once, in ascending order and in the form "
            '"2026-12-01".',
        ),
        (
            "channels.mail",
            {
                **MAIL,
                "per_day": 60,
                "lanes": {"normal": {"share": 0.5, "reserve": 0.5}, "bulk": {"share": 0.5}},
            },
            "channels.mail.per_day: 60 with a reserve of 0.5 leaves 30 for bulk, but a message may have 50 "
            "recipients; use 102 or more, or a smaller reserve.",
        ),
        (
            "api.callers",
            {"shop": {"per_day": 100}},
            "api.callers: 'shop' is not the ARN of a role or user; write a role as "
            "arn:aws:iam::<account>:role/<name>, without its path.",
        ),
        (
            "channels.mail.window",
            {"from": "9:00", "to": "20:00", "zone": "UTC"},
            "channels.mail.window: {'from': '9:00', 'to': '20:00', 'zone': 'UTC'} is not valid: from '9:00' "
            "is not a time of day; use one like 09:00.",
        ),
        (
            "channels.mail.window",
            {"from": "09:00", "until": "20:00"},
            "channels.mail.window: {'from': '09:00', 'until': '20:00'} is not a window (Object contains "
            "unknown field `until`); use from, to, days and zone.",
        ),
        (
            "channels.mail.window",
            {"from": "09:00", "to": "20:00"},
            "channels.mail.window.zone: is missing; add a time zone such as Europe/Berlin.",
        ),
        (
            "webhook.delays_seconds",
            [39_600] * 8,
            "webhook.delays_seconds: leads to 9 receives, which may take 320040 s (the longest wait or "
            "visibility timeout after each); the limit is 259200 s, one day less than the 4 days after "
            "which SQS deletes a message; lower it.",
        ),
        (
            "fax.space",
            REMOVED,
            "fax.space: signalwire needs exactly one of space and base_url; use the space "
            "of {space}.signalwire.com.",
        ),
        (
            "fax.base_url",
            "https://example.com",
            "fax.space: signalwire needs exactly one of space and base_url; use the space "
            "of {space}.signalwire.com.",
        ),
        (
            "fax",
            {"provider": "telnyx", "senders": ["+12025550123"], "connection_id": None},
            "fax.connection_id: is missing; telnyx needs the id of the fax application.",
        ),
        (
            "mail.senders",
            ["nobody"],
            "mail.senders.0: 'nobody' is not a mail address; write 'name@example.com' or 'Name "
            "<name@example.com>'.",
        ),
        (
            "mail.senders",
            [f"{'山' * 61} <ada@example.com>"],
            f"mail.senders.0: '{'山' * 61} <ada@example.com>' has 326 characters with its encoded name; "
            "use at most 320.",
        ),
        (
            "mail.senders",
            [],
            "mail.senders: [] should have at least 1 item after validation, not 0.",
        ),
    ],
)
def test_settings_that_do_not_fit_together_are_refused_with_the_reason_and_a_remedy(
    key: str, value: object, said: str
) -> None:
    assert refusal_of_setting(key, value) == f"mailroom.dev.{said}"


@pytest.mark.parametrize(
    ("key", "value", "memory"),
    [
        ("channels.mail.memory_mb", 192, 254),
        ("channels.mail.memory_mb", 512, 512),
        ("mail.max_attachment_bytes", 28_000_000, 354),
        ("channels.mail.submits_at_once", 4, 350),
    ],
)
def test_a_sender_has_the_memory_that_the_largest_messages_need(key: str, value: int, memory: int) -> None:
    row, *_ = dev_with(key, value).lane_rows()
    assert row.memory_mb == memory


def test_an_unknown_stage_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match="stage: 'qa' is unknown; use one of dev, prod, local, as in"):
        load(STAGES, "qa")


def test_the_error_about_a_missing_section_mailroom_names_its_place_in_cdk_json() -> None:
    with pytest.raises(SettingsError, match=r"mailroom: is missing from cdk\.json's context; add a section"):
        load(None, "dev")


@pytest.mark.parametrize("stage", SHIPPED)
def test_every_stage_of_cdk_json_is_accepted(stage: str) -> None:
    assert load(SHIPPED, stage).stage == stage


def test_the_app_exits_with_a_sentence_and_without_a_traceback_if_a_setting_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", "-c", "stage=qa"])
    with pytest.raises(SystemExit, match="stage: 'qa' is unknown; use one of dev, prod, local, as in"):
        app.main()


def test_a_context_option_without_a_value_is_refused_with_the_valid_form(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", "-c", "stage"])
    with pytest.raises(SystemExit):
        app.main()
    assert "'stage' has no value; write KEY=VALUE, such as stage=dev" in capsys.readouterr().err


def test_a_stages_settings_override_its_local_profile_which_does_not_add_sections() -> None:
    changes: dict[str, object] = {
        "profile": "local",
        "fax": None,
        "channels.sms.messages_per_second": 100,
        "webhook": {"delays_seconds": [7]},
    }
    settings = load(with_settings(changes), "dev")
    assert (settings.fax, settings.webhook.delays_seconds) == (None, (7,))
    assert settings.channels.keys() == {"mail", "sms"}
    assert (settings.channels["mail"].submit_seconds, settings.times) == (8, LOCAL)
    # At the lane's rate of 0.5 messages a second, the workers of mail wait for 4 s after a submit.
    assert {row.queue: row.timeout_seconds for row in settings.lane_rows()} == {
        "mail": 15,
        "mail-bulk": 15,
        "sms": 13,
    }


def test_objects_of_failed_batches_expire_before_the_items_of_any_ledger() -> None:
    assert UNPROCESSED_DAYS < LEAST_LEDGER_DAYS


@pytest.mark.parametrize("value", ["x" * 5000, ["x"] * 5000])
@pytest.mark.parametrize("key", ["monitoring.level", "channels", "deployment.account", "fax.on_unknown"])
def test_the_error_about_a_wrong_setting_shortens_a_long_value(key: str, value: object) -> None:
    assert len(refusal_of_setting(key, value)) < 400


def test_a_template_with_an_unknown_filter_stops_synth_with_its_file_and_line(tmp_path: Path) -> None:
    body = tmp_path / "templates" / "mail" / "receipt" / "body.html"
    body.parent.mkdir(parents=True)
    body.write_text("<p>Hello</p>\n{{ total|currency }}")
    with pytest.raises(SettingsError) as refused:
        synthesize({"stage": "dev", "mailroom": STAGES}, templates=tmp_path / "templates")
    assert str(refused.value) == (
        "templates/mail/receipt/body.html:2 uses the filter 'currency', which is unknown; "
        "see `mailroom docs write-templates`"
    )
