"""The SES simulator over real HTTP, with botocore as its client and a stand-in for the emulator."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, HTTPClientError

from mailroom_local.aws import LocalSession, fetch, patient
from mailroom_local.providers.server import ProviderServer
from tests.support.local.served import served
from tests.support.local.ses import Emulator

if TYPE_CHECKING:
    from types_boto3_sesv2 import SESV2Client

SENDER = "Mailroom <mailroom@example.com>"


@dataclass
class SesBench:
    """The simulator between a client and the stand-in."""

    client: "SESV2Client"
    emulator: Emulator
    url: str

    def send(self, to: str, **more: Any) -> str:
        simple = {"Subject": {"Data": "Hello"}, "Body": {"Text": {"Data": "Text"}, "Html": {"Data": "<p>"}}}
        mail = {
            "FromEmailAddress": SENDER,
            "Destination": {"ToAddresses": [to]},
            "Content": {"Simple": simple},
        } | more
        return self.client.send_email(**mail)["MessageId"]

    def refused(self, to: str, **more: Any) -> tuple[str, int]:
        with pytest.raises(ClientError) as refusal:
            self.send(to, **more)
        answer = refusal.value.response
        return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]

    def inbox(self) -> list[dict[str, Any]]:
        return list(fetch(f"{self.url}/inbox"))


@pytest.fixture
def ses_bench() -> Iterator[SesBench]:
    emulator = Emulator()
    with served(emulator) as aws, served(ProviderServer(0, aws)) as url:
        client = LocalSession().client("sesv2", endpoint_url=url, config=patient())
        yield SesBench(client, emulator, url)
        client.close()


def test_the_simulated_ses_account_can_send_and_has_the_plan_of_a_new_account(ses_bench: SesBench) -> None:
    account = ses_bench.client.get_account()
    assert (account["SendingEnabled"], account["PricingAttributes"]) == (True, {"CurrentPlan": "ESSENTIALS"})


def test_an_accepted_mail_is_stored_with_every_field(ses_bench: SesBench) -> None:
    provider_id = ses_bench.send(
        "ada@example.com",
        ConfigurationSetName="known",
        EmailTags=[{"Name": "mailroom-id", "Value": "YQ"}],
        Destination={"ToAddresses": ["ada@example.com"], "CcAddresses": ["c@example.com"]},
        Content={
            "Simple": {
                "Subject": {"Data": "Hello"},
                "Body": {"Text": {"Data": "Text"}},
                "Headers": [{"Name": "X-Correlation-ID", "Value": "YQ"}],
                "Attachments": [{"FileName": "a.pdf", "RawContent": b"12345"}],
            }
        },
    )
    (kept,) = ses_bench.inbox()
    assert (kept["channel"], kept["to"], kept["provider_id"]) == ("mail", "ada@example.com", provider_id)
    assert kept["received_at"].endswith("Z")
    assert kept["content"] == {
        "from": SENDER,
        "to": ["ada@example.com"],
        "cc": ["c@example.com"],
        "bcc": [],
        "reply_to": [],
        "configuration_set": "known",
        "tags": {"mailroom-id": "YQ"},
        "subject": "Hello",
        "text": "Text",
        "html": None,
        "headers": {"X-Correlation-ID": "YQ"},
        "attachments": [
            {
                "name": "a.pdf",
                "size": 5,
                "content_id": "",
                "url": "data:application/pdf;base64,MTIzNDU=",
            }
        ],
    }


@pytest.mark.parametrize("sender", ["eve@example.com", "eve@org", "eve@badexample.org"])
def test_the_ses_simulator_refuses_an_unverified_from_address_with_the_error_of_ses(
    ses_bench: SesBench, sender: str
) -> None:
    with pytest.raises(ClientError, match="check in region US-EAST-1: " + sender) as refusal:
        ses_bench.send("ada@example.com", FromEmailAddress=sender)
    assert refusal.value.response["Error"]["Code"] == "MessageRejected"
    assert ses_bench.inbox() == []


@pytest.mark.parametrize("sender", ["a@example.org", "A <b@news.example.org>"])
def test_the_ses_simulator_accepts_a_from_address_in_a_subdomain_of_a_verified_domain(
    ses_bench: SesBench, sender: str
) -> None:
    assert ses_bench.send("ada@example.com", FromEmailAddress=sender)


def test_the_ses_simulator_asks_the_emulator_once_for_an_identity_and_does_not_forward_mails(
    ses_bench: SesBench,
) -> None:
    for _ in range(2):
        ses_bench.send("ada@example.com")
    assert ses_bench.emulator.asked == ["/v2/email/identities/mailroom%40example.com"]


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("throttled", ("TooManyRequestsException", 429)),
        ("rejected", ("MessageRejected", 400)),
        ("unverified", ("MailFromDomainNotVerifiedException", 400)),
        ("paused", ("SendingPausedException", 400)),
        ("suspended", ("AccountSuspendedException", 400)),
        ("error", ("InternalServiceErrorException", 500)),
    ],
)
def test_a_simulator_address_is_refused_with_its_error_each_time_and_with_any_label(
    ses_bench: SesBench, name: str, refusal: tuple[str, int]
) -> None:
    for address in (f"{name}@simulator.amazonses.com", f"{name}+7@simulator.amazonses.com") * 2:
        assert ses_bench.refused(address) == refusal
    assert ses_bench.inbox() == []


def test_an_address_with_the_word_once_is_refused_only_the_first_time_for_each_label(
    ses_bench: SesBench,
) -> None:
    for label in ("1", "2"):
        address = f"throttled-once+{label}@simulator.amazonses.com"
        assert ses_bench.refused(address) == ("TooManyRequestsException", 429)
        assert ses_bench.send(address)
    assert len(ses_bench.inbox()) == 2


def test_the_address_lost_answer_breaks_the_connection_after_its_mail_was_accepted(
    ses_bench: SesBench,
) -> None:
    with pytest.raises(HTTPClientError):
        ses_bench.send("lost-answer+7@simulator.amazonses.com")
    assert [each["to"] for each in ses_bench.inbox()] == ["lost-answer+7@simulator.amazonses.com"]
    assert ses_bench.send("after@example.com")


def test_a_configuration_set_that_does_not_exist_is_refused(ses_bench: SesBench) -> None:
    assert ses_bench.refused("ada@example.com", ConfigurationSetName="gone") == ("NotFoundException", 404)


def test_a_mail_with_too_many_recipients_or_an_invalid_content_is_refused_as_by_ses(
    ses_bench: SesBench,
) -> None:
    many = {"ToAddresses": [f"{number}@example.com" for number in range(51)]}
    assert ses_bench.refused("", Destination=many) == ("BadRequestException", 400)
    broken = {"Headers": [{"Name": "X-A", "Value": "1\r\nBcc: eve@example.com"}], "Subject": {"Data": ""}}
    content = {"Simple": broken | {"Body": {}}}
    assert ses_bench.refused("ada@example.com", Content=content) == ("BadRequestException", 400)


def test_the_inbox_lists_mails_in_order_and_can_be_counted_and_emptied(ses_bench: SesBench) -> None:
    for number in range(3):
        ses_bench.send(f"{number}@example.com")
    assert [each["to"][0] for each in ses_bench.inbox()] == ["0", "1", "2"]
    with urllib.request.urlopen(f"{ses_bench.url}/inbox/count") as answer:
        assert json.load(answer) == {"count": 3}
    with urllib.request.urlopen(urllib.request.Request(f"{ses_bench.url}/inbox", method="DELETE")) as answer:
        assert answer.status == 204
    assert ses_bench.inbox() == []


@pytest.mark.parametrize("after", ["soon", "-1", ""])
def test_a_query_of_the_inbox_with_an_invalid_position_is_refused_with_a_sentence(
    ses_bench: SesBench, after: str
) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{ses_bench.url}/inbox?after={after}")
    with caught.value as answer:
        assert (answer.code, "after" in json.load(answer)["message"]) == (400, True)
