"""What the SMS channel needs beside its row."""

from typing import Literal

from pydantic import Field

from stacks.settings.regions import Region
from stacks.settings.sections import Section
from stacks.settings.urls import BASE_URL

TWILIO_URL = "https://api.twilio.com"
NUMBER = r"\+[1-9][0-9]{6,14}"
_ARN = r"arn:aws[a-z-]*:sms-voice:[a-z0-9-]+:[0-9]{12}:(phone-number|pool|sender-id)/[A-Za-z0-9/_-]+"
# AWS's other ways to name who sends: a number's or a pool's id, the ARN of anything, a sender id.
_SENDER = rf"^({NUMBER}|(phone|pool)-[0-9a-f]{{32}}|{_ARN}|[A-Za-z0-9_-]{{1,11}})$"


class Sms(Section):
    """Who sends, and as whom."""

    provider: Literal["twilio", "aws"]
    """Twilio, or AWS End User Messaging."""
    messaging_service_sid: str | None = Field(default=None, pattern=r"^MG[0-9a-f]{32}$")
    """Twilio's id of a Messaging Service, which chooses the number."""
    sender: str | None = Field(default=None, pattern=_SENDER)
    """Our own number in E.164, such as +12025550123; of aws any origination identity: also a sender id, the
    id of a number or a pool, or an ARN."""
    base_url: str | None = Field(default=None, pattern=BASE_URL)
    """Another address of Twilio's API: https, without a slash at its end; or providers, which the app is
    told by -c providers=URL."""
    default_region: Region | None = None
    """Where a number without its country code is, as ISO 3166 has it, such as US; null: numbers must be
    international."""
    configuration_set: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_-]{1,64}$")
    """The name of aws's configuration set; mailroom-{stage} by default."""
    max_segments: int = Field(default=10, ge=1, le=10)
    """The longest message, in the parts that a phone puts together and a provider bills."""
    media_seconds: int = Field(default=3_600, ge=60, le=7_200)
    """How long Twilio may fetch media from the payload bucket. A URL ends with the credentials that signed
    it, and a function's are replaced every few hours: more could not be kept."""
    clock_skew_seconds: int = Field(default=60, ge=0, le=600)
    """How far Twilio's clock may be behind ours when a lost submit is looked for."""

    @property
    def url(self) -> str:
        """Where Twilio's API is, without a slash at its end."""
        return self.base_url or TWILIO_URL
