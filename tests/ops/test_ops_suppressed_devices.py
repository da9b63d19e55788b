"""Devices on the suppression list: a lift enables the endpoint at SNS, before the next push."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from mailroom.recipients.choices import Reason, Suppression
from mailroom_ops import cli
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.shared import (
    LambdaDouble,
    Session,
    client,
    make_deeds,
    make_table,
    suppressions_of_dev,
)
from tests.support.unit.aws_models import problems
from tests.support.unit.fakes import client_error

AT = 1_795_251_600_000  # 2026-11-21T09:00:00Z
TOKEN = "APA91b-token"


class PushFunctions(LambdaDouble):
    """Lambda client of a stage with a push sender, if it has platform applications."""

    def __init__(self, applications: dict[str, str]) -> None:
        self.applications = applications

    def environment_of(self, name: str) -> dict[str, str] | None:
        if name == "messages-api":
            return {"LEDGER_TTL_SECONDS": "1"}
        if name != "send-push" or not self.applications:
            return None
        return {"PLATFORM_APPLICATIONS": json.dumps(self.applications)}


class Devices:
    """The account: an empty suppression list, and SNS with one platform application. `calls` are the names
    and arguments of calls to SNS, and `fault` is SNS's response to a call that enables an endpoint."""

    def __init__(self) -> None:
        self.sns = client("sns")
        self.exceptions = self.sns.exceptions
        self.application = self.sns.create_platform_application(Name="shop", Platform="GCM", Attributes={})[
            "PlatformApplicationArn"
        ]
        self.functions = PushFunctions({"android": self.application})
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.fault: Exception | None = None

    def create_platform_endpoint(self, **arguments: Any) -> Any:
        self.calls.append(("CreatePlatformEndpoint", arguments))
        return self.sns.create_platform_endpoint(**arguments)

    def set_endpoint_attributes(self, **arguments: Any) -> Any:
        self.calls.append(("SetEndpointAttributes", arguments))
        if self.fault is not None:
            raise self.fault
        return self.sns.set_endpoint_attributes(**arguments)

    def disabled(self, **attributes: str) -> str:
        """Return the ARN of a disabled endpoint of TOKEN."""
        created = self.sns.create_platform_endpoint(
            PlatformApplicationArn=self.application, Token=TOKEN, Attributes=attributes
        )
        arn: str = created["EndpointArn"]
        self.sns.set_endpoint_attributes(EndpointArn=arn, Attributes={"Enabled": "false"})
        return arn

    def enabled(self, arn: str) -> bool:
        found = self.sns.get_endpoint_attributes(EndpointArn=arn)["Attributes"]["Enabled"]
        return bool(found.lower() == "true")


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Iterator[Devices]:
    with mock_aws(), in_memory_dynamodb():
        make_table(client("dynamodb"), "mailroom-dev-suppressions", "recipient", "channel")
        make_deeds(client("dynamodb"))
        devices = Devices()
        session = Session({"sns": devices, "lambda": devices.functions})
        monkeypatch.setattr("boto3.Session", lambda: session)
        yield devices


def suppress_device(recipient: str, reason: Reason = "gone") -> str:
    assert suppressions_of_dev().mark(Suppression(recipient, "push", reason, AT, "EndpointDisabled", "p-1"))
    return recipient


def lift(recipient: str) -> Result:
    return CliRunner().invoke(cli.app, ["people", "allow", recipient, "--channel", "push", "--yes"])


@pytest.mark.parametrize("by_token", [True, False])
def test_a_lift_of_a_device_enables_its_endpoint(devices: Devices, by_token: bool) -> None:
    arn = devices.disabled()
    recipient = suppress_device(f"android#{TOKEN}" if by_token else arn)
    assert lift(recipient).exit_code == 0
    assert devices.enabled(arn)
    assert not suppressions_of_dev().find("push", [recipient])
    assert [problems("sns", name, arguments) for name, arguments in devices.calls] == [""] * len(
        devices.calls
    )
    assert devices.calls[-1] == (
        "SetEndpointAttributes",
        {"EndpointArn": arn, "Attributes": {"Enabled": "true"}},
    )


def test_a_lift_enables_an_endpoint_with_attributes_of_another_program_and_keeps_them(
    devices: Devices,
) -> None:
    arn = devices.disabled(CustomUserData="ada")
    assert lift(suppress_device(f"android#{TOKEN}")).exit_code == 0
    assert devices.enabled(arn)
    assert devices.sns.get_endpoint_attributes(EndpointArn=arn)["Attributes"]["CustomUserData"] == "ada"


def test_a_device_whose_endpoint_could_not_be_enabled_stays_suppressed(devices: Devices) -> None:
    arn = suppress_device(devices.disabled())
    devices.fault = client_error("AuthorizationError", status=403)
    assert lift(arn).exit_code == 2
    assert suppressions_of_dev().find("push", [arn])


def test_the_suppression_of_a_deleted_endpoint_can_be_lifted(devices: Devices) -> None:
    arn = suppress_device(devices.disabled())
    devices.sns.delete_endpoint(EndpointArn=arn)
    assert lift(arn).exit_code == 0
    assert not suppressions_of_dev().find("push", [arn])


def test_a_lift_of_a_device_that_an_operator_suppressed_does_not_change_its_endpoint(
    devices: Devices,
) -> None:
    arn = suppress_device(devices.disabled(), "operator")
    assert lift(arn).exit_code == 0
    assert (devices.enabled(arn), devices.calls) == (False, [])


@pytest.mark.parametrize("applications", [{}, {"ios": "arn:aws:sns:us-east-1:123456789012:app/APNS/shop"}])
def test_the_lift_of_a_token_of_an_unknown_application_makes_no_request_to_sns(
    devices: Devices, applications: dict[str, str]
) -> None:
    devices.functions.applications = applications
    assert lift(suppress_device(f"android#{TOKEN}")).exit_code == 0
    assert (devices.calls, list(suppressions_of_dev().listed())) == ([], [])
