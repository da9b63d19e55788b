"""The console's form: made from a channel's schema, shown as a command, judged and put as `send` does."""

import json
import shlex
from typing import Any

import pytest

from mailroom.aws.dynamo_values import plain
from mailroom.channels.contracts import CHANNELS, CONTRACTS
from mailroom_ops.console.pages import form
from mailroom_ops.console.site import Goto, Request, Shown, Site
from mailroom_ops.setup.schema import schema_of
from mailroom_ops.shared.screen import Refused
from tests.support.ops.console import Browser, values_of
from tests.support.ops.message import MAILBOX, Stage

HELLO = {"id": "m", "to": "ada@example.com", "subject": "It's", "text": "Hi\r\n\r\n$HOME 'x'"}


@pytest.fixture
def stage(stage: Stage) -> Stage:
    stage.functions.environments = {"send-mail": {"RECIPIENTS_ONLY": '["example.com"]'}, "send-fax": {}}
    return stage


def post_step(site: Site, step: str, channel: str = "mail", **fields: str) -> Any:
    return form.show(site, Request({"channel": channel}, {**fields, "step": step}))


@pytest.mark.parametrize("channel", CONTRACTS)
def test_a_channels_form_has_a_field_for_each_attribute_of_its_schema(site: Site, channel: str) -> None:
    shown = form.show(site, Request({"channel": channel}))
    assert isinstance(shown, Shown)
    fields = [each.name for each in [*values_of(shown)["first"], *values_of(shown)["more"]]]
    # `email` names the same as `to`, and `sender` belongs to the HTTP API.
    left_out = {"event_type", "email", "payload_prefix"}
    assert sorted(fields) == sorted({*schema_of(channel)["properties"]} - left_out)


@pytest.mark.parametrize("step", ["", "preview", "send"])
def test_the_form_of_an_unknown_channel_is_refused_at_each_step(site: Site, stage: Stage, step: str) -> None:
    """A console knows the channels that cdk.json had at its start."""
    with pytest.raises(Refused, match="Start the console again: it does not know the channel 'telegram'"):
        post_step(site, step, "telegram", **HELLO) if step else form.show(
            site, Request({"channel": "telegram"})
        )
    assert stage.mailbox() == {}


def test_the_form_to_send_a_mail_from_a_deployed_stage_begins_with_empty_fields(site: Site) -> None:
    shown = form.show(site, Request({"channel": "mail"}))
    assert isinstance(shown, Shown)
    assert (values_of(shown)["values"], values_of(shown)["examples"]) == ({}, CHANNELS["mail"].example)


def test_the_preview_of_a_message_shows_the_command_that_puts_its_item_but_does_not_put_it(
    site: Site, stage: Stage
) -> None:
    more = {
        "headers": '{"X-Team": "a"}',
        "variables": 'first_name=O\'Hara\nlast_name=-x\ncode="42"\nlines=[1]',
        "lane": "bulk",
    }
    shown = post_step(site, "preview", **HELLO, **more)
    item = json.loads(values_of(shown)["item"])
    assert item["text"] == HELLO["text"]
    words = shlex.split(values_of(shown)["put_command"])
    assert words[:5] == ["aws", "dynamodb", "put-item", "--table-name", MAILBOX]
    assert plain(json.loads(words[words.index("--item") + 1])) == item
    assert stage.mailbox() == {}


def test_line_breaks_in_the_form_of_a_mail_become_line_feeds_in_its_text(stage: Stage) -> None:
    browser = Browser(stage.session).enter()
    browser.post("/send?channel=mail", {**HELLO, "text": "Hello,\r\n\r\nAda", "step": "send"})
    assert stage.mailbox()["m"]["text"] == "Hello,\n\nAda"


def test_the_send_button_puts_the_message_and_opens_its_page(site: Site, stage: Stage) -> None:
    recipients = {**HELLO, "to": "ada@example.com\r\nBob, the second <bob@example.com>\r\n"}
    assert post_step(site, "send", **recipients) == Goto("/message?id=m&channel=mail")
    assert stage.mailbox()["m"]["to"] == ["ada@example.com", "Bob, the second <bob@example.com>"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"to": "ada@example.com\nada@"}, "to"),
        ({"headers": "{"}, "headers"),
        ({"headers": '{"Subject": "x"}'}, "headers"),
        ({"send_at": "soon"}, "send_at"),
        ({"variables": "no pair"}, "variables"),
        ({"variables": "attempt=soon"}, "attempt"),
        ({"ttl": "1e999"}, "ttl"),
        ({"headers": '{"X-A": ' + "[" * 600 + "]" * 600 + "}"}, "headers"),
    ],
)
def test_the_form_shows_an_invalid_value_at_its_field_and_does_not_put_the_message(
    site: Site, stage: Stage, wrong: dict[str, str], field: str
) -> None:
    shown = post_step(site, "send", **{**HELLO, **wrong})
    assert (shown.view.file_name(), shown.status, [*values_of(shown)["faults"]]) == (
        "form.html",
        400,
        [field],
    )
    assert stage.mailbox() == {}


@pytest.mark.parametrize(
    "payload",
    ["{", "1e200", "[" * 40 + "]" * 40, "[" * 60_000],
)
def test_the_form_refuses_json_that_dynamodb_does_not_take_at_its_field(
    site: Site, stage: Stage, payload: str
) -> None:
    shown = post_step(site, "preview", "webhook", url="https://hooks.example.com/orders", payload=payload)
    assert (shown.status, [*values_of(shown)["faults"]]) == (400, ["payload"])


def test_the_form_refuses_the_id_of_another_message_at_the_field_of_the_id(site: Site, stage: Stage) -> None:
    stage.put(MAILBOX, **{**HELLO, "event_type": "mail", "text": "another"})
    shown = post_step(site, "send", **HELLO)
    assert [*values_of(shown)["faults"]] == ["id"]


@pytest.mark.parametrize(
    ("channel", "sender", "said"),
    [
        (
            "mail",
            {"RECIPIENTS_ONLY": '["example.com"]'},
            "may reach example.com; messages to others are",
        ),
        (
            "mail",
            {"RECIPIENTS_ONLY": "[]", "REDIRECT_TO": "t@example.com"},
            "messages to others go to t@example.com",
        ),
        ("fax", {}, "may reach everybody"),
        ("webhook", {}, "posts it to the URL"),
    ],
)
def test_the_sentence_about_reachable_recipients_depends_on_the_limits_of_the_stage(
    site: Site, stage: Stage, channel: str, sender: dict[str, str], said: str
) -> None:
    stage.functions.environments = {f"send-{channel}": sender}
    assert said in form.reach(site, channel)


def test_the_preview_of_an_sms_has_normalised_white_space_and_the_reason_of_its_encoding(
    site: Site, stage: Stage
) -> None:
    stage.functions.environments = {**stage.functions.environments, "send-sms": {}}
    shown = post_step(site, "preview", "sms", id="s", to="+16175551234", text="Hi\r\n\r\nit\u2019s you\t!")
    assert values_of(shown)["preview"].text == "Hi\n\nit\u2019s you !"
    assert values_of(shown)["preview"].encoding_reason.startswith("'\u2019' (U+2019) makes this text UCS-2")


ORDER: dict[str, Any] = {
    "template": "weekly-followers",
    "topic": "followers",
    "first_name": "Ada",
    "new_followers": 2,
    "followers": ["Grace", "Mary"],
    "code": "42",
    "price": "9.50",
    "sure": "true",
    "note": "",
    "reply_to": ["a@example.com", "b@example.com"],
    "headers": {"X-Team": "a"},
}
"""Attributes of a message of each type, and texts that look like numbers and words of JSON."""


def test_the_form_copies_a_message_to_another_address_under_an_id_derived_from_the_original_id(
    site: Site, stage: Stage
) -> None:
    stage.put(MAILBOX, id="order-42", event_type="mail", to="ada@exmaple.com", send_at="2026-11-22", **ORDER)
    values = values_of(form.show(site, Request({"channel": "mail", "copy": "order-42"})))["values"]
    assert not {"to", "send_at"} & values.keys()
    id_ = values["id"]
    assert id_.startswith("order-42-again-")
    typed = {name: text.replace("\n", "\r\n") for name, text in values.items()}  # as a browser sends them
    assert post_step(site, "send", **typed, to="ada@example.com") == Goto(f"/message?id={id_}&channel=mail")
    assert stage.mailbox()[id_] == {"id": id_, "event_type": "mail", "to": "ada@example.com", **ORDER}


def test_a_copy_is_previewed_before_its_recipient_is_typed(site: Site, stage: Stage) -> None:
    stage.put(MAILBOX, id="order-42", event_type="mail", to="ada@exmaple.com", **ORDER)
    shown = values_of(form.show(site, Request({"channel": "mail", "copy": "order-42"})))
    assert shown["preview"].headers["Subject"] == "Ada, you have 2 new followers"
    assert "Grace" in form.frame(site, Request({"document": shown["document"]})).html  # type: ignore[union-attr]


def test_the_form_has_a_field_for_each_variable_of_a_template_and_shows_a_fault_at_its_field(
    site: Site,
) -> None:
    chosen = {"to": "ada@example.com", "template": "weekly-followers", "topic": "followers"}
    shown = values_of(post_step(site, "change", **chosen))
    assert shown["variables"]["first_name"] == {"": {"": "var.first_name"}}
    assert [*shown["variables"]["followers"]] == ["0", "1", "2"]
    assert shown["problem"].startswith("first_name: is missing; ")
    followers = {"var.first_name": "Ada", "var.new_followers": "1"}
    faults = values_of(post_step(site, "send", **chosen, **followers))["faults"]
    assert [*faults] == ["var.followers"]
