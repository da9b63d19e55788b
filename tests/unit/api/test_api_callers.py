"""Which objects of the payload bucket a caller may name: those of its own part, by whatever attribute."""

import json
from typing import Any

import pytest

from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.mail.contract import Mail
from mailroom.content.payload_attributes import expanded
from mailroom.content.payloads import Payloads
from mailroom.errors import Invalid
from mailroom.message.message import parse
from tests.support.unit.api_requests import Api
from tests.support.unit.shared import BUCKET, MAILBOX, Aws, FakeClock, Item, item

PREFIXES = {"shop": "shop/", "billing": "teams/billing/", "trusted": ""}
ROLE = "arn:aws:iam::123456789012:role/shop"
OTHERS = f"s3://{BUCKET}/another-team/payroll.pdf"
OWN = f"s3://{BUCKET}/shop/invoices/42.pdf"


def token(**claims: str) -> dict[str, Any]:
    """Return API Gateway's context of a caller whose token it has verified."""
    return {"jwt": {"claims": claims, "scopes": None}}


def signed_authorizer(arn: str) -> dict[str, Any]:
    """Return API Gateway's context of a caller whose signature it has verified."""
    return {"iam": {"accountId": "123456789012", "userArn": arn, "userId": "AIDAEXAMPLE"}}


@pytest.fixture(autouse=True)
def objects(aws: Aws) -> None:
    """The objects that messages name."""
    for ref in (OWN, OTHERS):
        aws.s3.put_object(Bucket=BUCKET, Key=ref.removeprefix(f"s3://{BUCKET}/"), Body=b"x")


API = {"caller_claim": "sub", "payload_prefixes": PREFIXES}


SHOP = token(sub="shop")


def naming(ref: str) -> list[tuple[Item, str]]:
    """A message for each attribute that can name an object, with that attribute."""
    number = {"id": "m-1", "to": "+16175551234"}
    return [
        (item(attachments=[{"ref": OWN}, {"ref": ref}]), "attachments[1].ref"),
        (item(text=..., payload_ref=ref), "payload_ref"),
        ({**number, "event_type": "sms", "media_urls": ["https://f.example/", ref]}, "media_urls[1]"),
        ({**number, "event_type": "sms", "payload_ref": ref}, "payload_ref"),
        ({**number, "event_type": "fax", "payload_ref": ref}, "payload_ref"),
        ({"id": "m-1", "event_type": "push", "to": "token", "payload_ref": ref}, "payload_ref"),
        (
            {"id": "m-1", "event_type": "webhook", "url": "https://h.example/", "payload_ref": ref},
            "payload_ref",
        ),
    ]


@pytest.mark.parametrize(("message", "field"), naming(OTHERS))
def test_a_message_that_names_another_callers_object_is_refused_with_the_attribute_that_names_it(
    api: Api, aws: Aws, message: Item, field: str
) -> None:
    answer = api.post_as(SHOP, message)
    assert (answer.status, answer.fields) == (422, [field])
    assert answer.json["errors"][0]["problem"] == (
        f"{OTHERS!r} has a key that the caller may not use; use a key in the payload bucket "
        "that begins with shop/"
    )
    assert aws.item(message["id"], message["event_type"], table=MAILBOX) == {}


@pytest.mark.parametrize(("message", "field"), naming(OWN))
def test_a_message_that_names_an_object_under_the_callers_own_prefix_is_accepted(
    api: Api, message: Item, field: str
) -> None:
    assert api.post_as(SHOP, message).status == 202


@pytest.mark.parametrize(
    "ref",
    [
        f"s3://{BUCKET}/shop",
        f"s3://{BUCKET}/shopping/list.pdf",
        f"s3://{BUCKET}/shop/../another-team/payroll.pdf",
        f"s3://{BUCKET}/shop/./42.pdf",
        f"s3://{BUCKET}//shop/42.pdf",
        f"s3://{BUCKET}/Shop/42.pdf",
        f"s3://{BUCKET}/oversize/0a1b.json",
        "s3://shop/shop/42.pdf/../..",
        "shop/42.pdf",
    ],
)
def test_a_message_that_names_an_object_outside_of_the_callers_prefix_is_refused_in_any_spelling(
    api: Api, ref: str
) -> None:
    assert api.post_as(SHOP, item(attachments=[{"ref": ref}])).fields == ["attachments[0].ref"]


@pytest.mark.parametrize(
    "caller", [token(sub="stranger"), token(), token(client_id="shop"), signed_authorizer(ROLE), None]
)
def test_a_caller_without_a_prefix_may_send_only_messages_without_objects(
    api: Api, caller: dict[str, Any] | None
) -> None:
    assert api.post_as(caller, item()).status == 202
    answer = api.post_as(caller, item(id="m-2", attachments=[{"ref": OWN}]))
    assert answer.fields == ["attachments[0].ref"]
    assert answer.json["errors"][0]["problem"] == (
        "refers to an object, but the caller has no prefix in the payload bucket; ask "
        "the stage's operator to add one to api.payload_prefixes"
    )


@pytest.mark.parametrize(("message", "field"), naming(OTHERS))
def test_a_caller_whose_prefix_is_empty_may_name_any_object_of_the_payload_bucket(
    api: Api, message: Item, field: str
) -> None:
    assert api.post_as(token(sub="trusted"), message).status == 202


def test_every_caller_may_name_any_object_if_the_settings_have_no_prefixes(
    aws: Aws, clock: FakeClock
) -> None:
    assert Api(clock).post_as(SHOP, item(attachments=[{"ref": OTHERS}])).status == 202


def test_the_settings_choose_the_token_claim_that_identifies_a_caller(aws: Aws, clock: FakeClock) -> None:
    api = Api(clock, caller_claim="client_id", payload_prefixes=PREFIXES)
    message = item(attachments=[{"ref": OWN}])
    assert api.post_as(token(sub="shop", client_id="billing"), message).status == 422
    assert api.post_as(token(sub="billing", client_id="shop"), message).status == 202


@pytest.mark.parametrize(
    ("arn", "status"),
    [
        ("arn:aws:sts::123456789012:assumed-role/shop/i-0123456789", 202),
        ("arn:aws:sts::123456789012:assumed-role/shop/another-session", 202),
        (ROLE, 202),
        ("arn:aws:sts::999999999999:assumed-role/shop/i-0123456789", 422),
        ("arn:aws:sts::123456789012:assumed-role/other/shop", 422),
        ("arn:aws:iam::123456789012:user/shop", 422),
    ],
)
def test_a_caller_that_signs_its_requests_is_identified_by_its_iam_role_in_any_session(
    aws: Aws, clock: FakeClock, arn: str, status: int
) -> None:
    api = Api(clock, payload_prefixes={ROLE: "shop/"})
    assert api.post_as(signed_authorizer(arn), item(attachments=[{"ref": OWN}])).status == status


def test_a_payload_in_s3_may_not_name_an_object_outside_of_the_callers_prefix(api: Api, aws: Aws) -> None:
    """The API does not read the object, which its owner may change until the message is sent."""
    ref = f"s3://{BUCKET}/shop/1.json"
    assert api.post_as(SHOP, item(text=..., payload_ref=ref)).status == 202
    stored = aws.item(table=MAILBOX)
    content = {"text": "Hi", "payload_prefix": "", "attachments": [{"ref": OTHERS}]}
    aws.s3.put_object(Bucket=BUCKET, Key="shop/1.json", Body=json.dumps(content))
    whole = expanded(Payloads(aws.s3, BUCKET), parse(stored, {"mail": Mail}), ref)
    with pytest.raises(Invalid, match=r"attachments\[0\].ref: .* has a key that the caller may not use"):
        parse(whole, CONTRACTS)


def test_a_caller_cannot_choose_its_own_prefix(api: Api, aws: Aws) -> None:
    ref = f"s3://{BUCKET}/shop/1.json"
    api.post_as(SHOP, item(text=..., payload_ref=ref, payload_prefix="another-team/"))
    assert aws.item(table=MAILBOX)["payload_prefix"] == "shop/"


def test_a_repeated_message_of_a_caller_with_a_prefix_gets_the_result_existed(api: Api) -> None:
    message = item(text=..., payload_ref=f"s3://{BUCKET}/shop/1.json")
    assert [api.post_as(SHOP, message).json["result"] for _ in range(2)] == ["accepted", "existed"]


def test_a_large_message_that_the_api_stores_in_s3_may_name_only_objects_under_the_callers_prefix(
    api: Api, aws: Aws
) -> None:
    large = item(text="x" * 500_000, attachments=[{"ref": OWN}])
    assert api.post_as(SHOP, large).status == 202
    stored = aws.item(table=MAILBOX)
    whole = expanded(Payloads(aws.s3, BUCKET), parse(stored, {"mail": Mail}), stored["payload_ref"])
    assert parse(whole, {"mail": Mail}).attachments[0].ref == OWN
    assert api.post_as(SHOP, {**large, "attachments": [{"ref": OTHERS}]}).fields == ["attachments[0].ref"]
