"""The settings with which a first day at another emulator is played."""

from lab.first_day import settings
from mailroom_local.aws import STAGE
from mailroom_stacks.settings.load import load, with_providers

PROVIDERS = "http://172.17.0.1:4580"


def test_the_stage_of_the_program_first_day_sends_only_to_simulators() -> None:
    context = settings(PROVIDERS)
    stage = with_providers(load(context["mailroom"], STAGE), context["providers"])
    assert stage.providers("mail") == ("resend",)
    assert stage.sms
    assert stage.fax
    urls = stage.channels["mail"].base_url, stage.sms.base_url, stage.fax.base_url
    assert urls == (f"{PROVIDERS}/resend", f"{PROVIDERS}/twilio", f"{PROVIDERS}/signalwire")
    assert "172.17.0.1/32" in stage.webhook.allowed_networks
