"""How a command ends where AWS refuses."""

import pytest
import typer

from ops.screen import aws_faults
from tests.unit.fakes import client_error


def told(code: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(typer.Exit) as ended, aws_faults("prod"):
        raise client_error(code)
    assert ended.value.exit_code == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "code",
    [
        *("SignatureDoesNotMatch", "InvalidSignatureException"),
        *("RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"),
    ],
)
def test_a_signature_that_is_not_taken_leads_to_the_clock(
    code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = told(code, capsys)
    assert "this machine's clock" in text
    assert "timedatectl set-ntp true" in text


def test_other_refusals_lead_to_the_credentials_alone(capsys: pytest.CaptureFixture[str]) -> None:
    text = told("AccessDenied", capsys)
    assert "clock" not in text
    assert "--stage prod" in text
