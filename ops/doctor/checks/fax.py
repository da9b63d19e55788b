"""Whether the fax provider knows us, and could fetch a PDF of ours."""

import secrets
from collections.abc import Iterator

import requests

from mailroom.aws import clients
from mailroom.channels.fax.adapter import FaxAdapter
from mailroom.channels.fax.contract import Fax
from mailroom.channels.provider import Unconfigured
from mailroom.environment import FaxSender
from mailroom.http.https import NotSent, Unclear
from mailroom.telemetry import redact
from ops.doctor.look import CONNECT_SECONDS, READ_SECONDS, Look
from ops.doctor.verdict import Verdict, failed, ok, skipped

NO_FAX = "No function of the stage sends faxes."
_NOWHERE = "https://mailroom.invalid/doctor.pdf"
_FOLDER = "doctor"


def credentials(look: Look) -> Iterator[Verdict]:
    """The provider's, tried as the sender would after a crash: by asking which faxes our own number got in
    the last minute."""
    senders = look.senders("fax")
    if not senders:
        yield skipped(NO_FAX)
    for each in senders:
        settings = each.settings(FaxSender)
        put = f"aws secretsmanager put-secret-value --secret-id {look.prefix}fax --secret-string file://fax.json"
        question = Fax(id="doctor", event_type="fax", to=settings.fax_senders[0], pdf_url=_NOWHERE)
        try:
            FaxAdapter.of(settings).look_up(question, int(look.clock() * 1000), ())
        except Unconfigured as fault:
            yield failed(f"{fault}.".replace("the fax", "The fax", 1), put)
        except NotSent as trouble:
            yield failed(f"{settings.fax_provider} {trouble}.", "Check fax.base_url.")
        except Unclear as trouble:
            yield failed(f"{settings.fax_provider} did not answer: {redact(str(trouble)).rstrip('.')}.", put)
        else:
            yield ok(f"{settings.fax_provider} takes the credentials and lists faxes.")


def media(look: Look) -> Iterator[Verdict]:
    """A PDF in the payload bucket, fetched by a URL as the provider gets it; from here, not from there."""
    buckets = {each.environment["PAYLOAD_BUCKET"] for each in look.senders("fax")}
    if not buckets:
        yield skipped(NO_FAX)
    for bucket in sorted(buckets):
        yield _fetched(bucket)


def _fetched(bucket: str) -> Verdict:
    # By the sender's own client: one made otherwise may sign for another host than the provider is given.
    client, key = clients.s3(), f"{_FOLDER}/{secrets.token_hex(8)}.pdf"
    content = secrets.token_bytes(64)
    client.put_object(Bucket=bucket, Key=key, Body=content)
    try:
        place = {"Bucket": bucket, "Key": key}
        url = client.generate_presigned_url("get_object", Params=place, ExpiresIn=60)
        answer = requests.get(url, timeout=(CONNECT_SECONDS, READ_SECONDS), allow_redirects=False)
    except requests.RequestException as trouble:
        return failed(f"The payload bucket cannot be reached from here: {type(trouble).__name__}.", _POLICY)
    finally:
        client.delete_object(Bucket=bucket, Key=key)
    if answer.status_code == 200 and answer.content == content:
        return ok("A PDF in the payload bucket can be fetched by a URL that ends soon.")
    return failed(f"A PDF in the payload bucket cannot be fetched: S3 answers {answer.status_code}.", _POLICY)


_POLICY = "Look at the bucket's policy, and at what stands between here and S3."
