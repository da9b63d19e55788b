"""The parsers of text from outside, by name, for fuzz tests."""

import copy
import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError
from hypothesis import strategies as st

from mailroom.campaigns.queue_bodies import chunk_of, collect_body
from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.fax.contract import item_of
from mailroom.channels.preview import Previews
from mailroom.content.payload_attributes import expanded
from mailroom.content.payloads import Payloads
from mailroom.content.templates import Templates
from mailroom.dead_letters.cause import cause_of, subject_of
from mailroom.dead_letters.queue import DeadLetter
from mailroom.dispatch.dispatcher import Validator
from mailroom.environment import DatabaseSettings
from mailroom.errors import MAX_KEY_BYTES, Invalid, InvalidRequest, InvalidSecret, Malformed, OutcomeUnknown
from mailroom.feedback import reader
from mailroom.http import provider_api
from mailroom.http.url_policy import UrlPolicy, host_of
from mailroom.message import address
from mailroom.message.message import Reference, decode, parse, scheduled
from mailroom.providers.twilio import sender as twilio_sms
from mailroom.providers.twilio.account import account_of
from mailroom.providers.webhooks.signing import host_key
from mailroom.recipients.unsubscribe_links import Choice, Tokens
from mailroom.unsubscribe.page import PageSettings, Topic
from mailroom_ops.campaigns.import_source import FileEntries, Source
from mailroom_ops.campaigns.imported_items import Items, Options
from mailroom_ops.messages.items import Rules
from mailroom_ops.shared.screen import Refused
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.sentences import SettingsError
from tests.support import ROOT
from tests.support.fuzz.inputs import (
    SECRET,
    bent,
    bodies,
    growing,
    json_of,
    nearly_valid_texts,
    strange_texts,
)
from tests.support.stacks.refusals import STAGES
from tests.support.unit import audience, feedback_callbacks, feedback_words, unsubscribing
from tests.support.unit.api_requests import api_event
from tests.support.unit.fakes import client_error
from tests.support.unit.fax import fax_body
from tests.support.unit.people_api import people_api
from tests.support.unit.shared import BUCKET, NOW, Aws, FakeClock, Item, mail
from tests.support.unit.webhooks import KEY, Secrets, cached_secret

RIGHT: dict[str, Item] = {
    "mail": {
        "to": [f"Ada <{SECRET}@example.com>", "eve@example.com"],
        "cc": "bo@bücher.example",
        "reply_to": ["a@b.example"],
        "subject": "Hello",
        "text": "Hi",
        "headers": {"X-Order": "7"},
        "topic": "news",
        "lane": "bulk",
        "expires_at": "2027-01-01T00:00:00Z",
        "callback_url": "https://hooks.example.com/a",
        "ttl": 1827251600,
    },
    "sms": {"to": "+16175551234", "text": "Hi", "media_urls": [f"s3://{BUCKET}/a.png"]},
    "push": {
        "to": "arn:aws:sns:eu-central-1:123456789012:news",
        "title": "Hello",
        "body": "Hi",
        "data": {"a": 1},
    },
    "fax": {"to": "+16175551234", "pdf_url": "https://files.example.com/a.pdf", "retry_count": 1},
    "webhook": {"url": f"https://hooks.example.com/a?{SECRET}", "payload": {"a": [1, {"b": None}]}},
}
ITEMS: list[Item] = [{"id": "m-1", "event_type": name, **item} for name, item in RIGHT.items()]
TEMPLATED: list[Item] = [
    {"id": "m-1", "event_type": "mail", "to": "a@b.example", "template": "default", "first_name": "Ada"},
    {"id": "m-1", "event_type": "sms", "to": "+16175551234", "template": "default", "first_name": "Ada"},
    {
        "id": "m-1",
        "event_type": "mail",
        "to": "a@b.example",
        "subject": "Hello",
        "text": "Hi",
        "attachments": [{"ref": f"s3://{BUCKET}/a.pdf", "filename": "a.pdf"}],
    },
    {"id": "m-1", "event_type": "push", "to": "token", "payload_ref": f"s3://{BUCKET}/a.json"},
]
EVENTS: list[Any] = [
    *(feedback_words.ses_example(name) for name in feedback_words.PUBLISHED),
    *(feedback_words.ses_example(name) for name in feedback_words.NOTICES),
    feedback_words.sns(feedback_words.ses_example("bounce")),
    feedback_words.twilio_event(),
    feedback_words.twilio_event(To=f"+1617555{SECRET}"),
    feedback_words.sms_event(),
    feedback_words.two_way(),
    feedback_words.texted(),
]
CAMPAIGN: list[Item] = [
    {"campaign": "weekly", "scheduled_at": "2026-11-18T13:00:00Z", "run": "a", "start": "b"},
    {"campaign": "weekly", "run": "2026-11-18T13:00Z", "start": "b", "page": 1, "cursor": {"offset": 7}},
    {"MessageBody": '{"campaign": "weekly", "scheduled_at": "2026-11-18T13:00:00Z"}', "QueueUrl": "q"},
]
COMPOSED: Item = {
    "id": "weekly#a#7",
    "event_type": "mail",
    "campaign_start": {"campaign": "weekly", "run": "a", "start": 1795000000000},
    **RIGHT["mail"],
}
CHUNK: Item = {
    "campaign": "weekly",
    "run": "a",
    "scheduled_at": "2026-11-18T13:00:00Z",
    "start": 1795000000000,
    "recipients": [{"key": "7", "attributes": {"email": "a@b.example", "first_name": "Ada"}}],
}
FILES = [
    'id,email,subject,name\n7,a@b.example,Hi,"Lane, Ann"\n8,c@d.example,Hi,"says ""no"""\n',
    'id,email,subject,name\r\n7,a@b.example,Hi,"two\r\nlines"\r\n\r\n8,c@d.example,Hi,x\r\n',
    'id,email,subject,name\n7,a"b",Hi,c\n8,p","r,Hi,"\n9,"","",""\n',
]
LINES = [
    '{"id": 7, "email": "a@b.example", "User": {"Names": ["Ada"]}, "n": 1.50}\n{"id": "8", "to": null}\n',
    '{"id": "7", "event_type": "sms", "to": "+16175551234", "text": "Hi"}\n',
]
PIECES_OF_FILES = (
    '"',
    '""',
    ",",
    "\n",
    "\r",
    ";",
    '",',
    ',"',
    '"\n',
    '"\n"',
    "=1",
    "+1",
    "\0",
    "é",
    "{",
    "[",
)
ADDRESSES = ["ada@example.com", '"Ada L." <ada@bücher.example>', "Ada <a.b+c@xn--bcher-kva.example>"]
PHONES = ["+16175551234", "(617) 555-1234", "+49 30 1234567", "tel:+1-617-555-1234", "+1 617 555 1234 ext. 9"]
URLS = [
    "https://hooks.example.com/a?b=c#d",
    "https://[2001:db8::1]:443/",
    "http://127.0.0.1:8080/a",
    "https://user:pass@a.example/",
]
TEMPLATES = [
    "{% for a in xs %}{{ loop.index }}{{ a }}{% endfor %}",
    "{{ x|indent(n) }}{{ x|replace('a', y) }}{{ x|wordwrap(n, wrapstring=y) }}",
    "{{ '%*d' % (n, n) }}{{ '{:>9}'.format(x) }}{{ x|urlize }}{{ xs|join(y) }}{{ xs|tojson(n) }}",
    "{% if x is mapping %}{{ x.items()|list }}{% else %}{{ x * n }}{{ n ** n }}{{ x[n] }}{% endif %}",
    "{{ x|center(n) }}{{ xs|batch(n)|list }}{{ n|round(n) }}{{ x.zfill(n) }}{{ x % y }}{{ x|int(n) }}",
]
VARIABLES: Item = {"x": "abc", "y": "%s", "n": 3, "xs": ["a", {"b": "c"}]}


@dataclass(frozen=True)
class Parser:
    """A parser under test.

    `right` are valid inputs, `inputs` generates hostile ones, and `open` calls the parser, which raises one
    of `refusals` for an invalid input. If `private` is true, an error message must not quote the input.
    """

    right: list[Any]
    inputs: st.SearchStrategy[Any]
    open: Callable[[Aws], Callable[[Any], object]]
    refusals: tuple[type[Exception], ...]
    private: bool = False
    grown: Callable[[Any], Any] | None = lambda value: value
    """Converts a grown valid value to an input. None if the deployer writes the input, whose size is then not
    limited."""

    @property
    def growing(self) -> st.SearchStrategy[Any]:
        """Return inputs of which one part grows."""
        return growing(self.right)


def of_json(
    right: list[Any],
    read: Callable[[Any], object],
    *refusals: type[Exception],
    private: bool = False,
) -> Parser:
    """Return a parser of JSON."""
    return Parser(right, bodies(right), lambda _aws: read, refusals, private, json_of)


def of_text(right: list[str], read: Callable[[Any], object], *refusals: type[Exception]) -> Parser:
    """Return a parser of text."""
    return Parser(right, nearly_valid_texts(right), lambda _aws: read, refusals)


class NoObjects:
    """A model of S3 with one object, `a.json`."""

    class exceptions:  # noqa: N801 - the client names it so
        NoSuchKey = type("NoSuchKey", (Exception,), {})
        ClientError = ClientError

    def __init__(self, content: bytes | None = None) -> None:
        self._content = content

    def get_object(self, **_: Any) -> dict[str, Any]:
        if self._content is None:
            raise self.exceptions.NoSuchKey
        body = closing_bytes(self._content)
        return {"Body": body, "ContentLength": len(self._content)}

    def head_object(self, **_: Any) -> dict[str, Any]:
        raise client_error("404", status=404)


def closing_bytes(content: bytes) -> Any:
    """Return the body of a response of S3."""
    import io

    return io.BytesIO(content)


RULES = Rules(
    mailbox_table="mailbox",
    payload_bucket=BUCKET,
    lanes={name: ["normal", "bulk"] for name in CONTRACTS},
    callback_schemes=["https"],
    callback_ports=[443],
    default_region="US",
    payload_ttl_seconds=7_776_000,
)


def validator() -> Validator:
    """Return the validator of a stage's HTTP entrance."""
    return RULES.validator(NoObjects())  # type: ignore[arg-type]


def _validate_item(text: str) -> None:
    validator().validate(decode(text))


def _faxes(text: str) -> None:
    parse(item_of(decode(text)), CONTRACTS)


def _events(text: str) -> None:
    reader.read(text, feedback_words.TOPICS, "US")


def _dead_letter(text: str) -> None:
    for queue in ("mail-dlq", "scheduled-dlq", "webhook-dlq", "feedback-dlq", "fax-dlq.fifo", "collect-dlq"):
        letter = DeadLetter(queue, "1", "1", text, 3, int(NOW * 1000))
        subject = subject_of(letter)
        assert (subject.kind == "malformed") <= (subject.key is None)
        for name, bound in MAX_KEY_BYTES.items() if subject.key else ():
            assert 0 < len(getattr(subject.key, name).encode()) <= bound
        for trouble in ({}, {"code": "retry", "message": ""}, _loaded(text)):
            cause = cause_of(letter, subject, {"trouble": trouble, "callbacks": trouble, "status": "sending"})
            assert cause.code
            assert cause.message


def _loaded(text: str) -> Any:
    try:
        return decode(text)
    except Malformed:
        return text


def _address(text: str) -> None:
    address.normalise(text)
    bare = address.bare(text)
    assert bare in address.spellings(bare)
    address.readable(bare.partition("@")[2])


def _phone(text: str) -> None:
    for region in (None, "US", "DE"):
        assert address.to_e164(text, region).startswith("+")


def _url(text: str) -> None:
    host_of(text)
    policy = UrlPolicy(schemes=("https", "http"), ports=(), resolve=lambda *_: ["8.8.8.8"])
    policy.check(text, 1)


def _payload(text: str) -> None:
    message = mail(payload_ref=f"s3://{BUCKET}/a.json")
    client: Any = NoObjects(text.encode("utf-8", "surrogatepass"))
    item = expanded(Payloads(client, BUCKET), message, message.payload_ref or "")
    parse(item, CONTRACTS)


def _read_response(text: str) -> None:
    headers = {"retry-after": text[:200], "date": text[-200:]}
    provider_api.retry_after(headers)
    twilio_sms.reason_of(400, text)
    provider_api.text_of(provider_api.body_of(200, text), "sid")


def _date(text: str) -> None:
    provider_api.epoch(text)


def _account(text: str) -> None:
    account_of(text)


def _links(text: str) -> None:
    Tokens(cached_secret(Secrets(text), lambda: 0.0)).sign(_CHOICE)


_CHOICE = Choice("a@b.example", "news")


def _login(text: str) -> None:
    from mailroom.campaigns.databases import login_of
    from tests.support.unit.webhooks import ARN

    settings = DatabaseSettings(secret_arn=ARN, connect_seconds=5, statement_seconds=60)
    login_of("shop", settings, Secrets(text))  # type: ignore[arg-type]


def _templates(_aws: Aws) -> Callable[[Any], object]:
    root = Path(tempfile.mkdtemp())
    for at, source in enumerate(TEMPLATES):
        (root / f"t{at}").mkdir()
        (root / f"t{at}" / "body.txt").write_text(source)
    own, shared = Templates(root), Templates(ROOT / "templates" / "mail")

    def render(variables: Any) -> None:
        refused = None
        for name in own.names("body.txt"):
            try:
                own.text(name, dict(variables))
            except Invalid as fault:
                refused = fault
        shared.render("default", {"first_name": variables.get("x"), **variables})
        if refused:
            raise refused

    return render


def _sources(_aws: Aws) -> Callable[[Any], object]:
    root = Path(tempfile.mkdtemp())
    (root / "a").mkdir()

    def render(source: str) -> None:
        (root / "a" / "body.txt").write_text(source, errors="replace")
        Templates(root).text("a", VARIABLES)

    return render


def _audience(kind: str) -> Callable[[Any], object]:
    def read(text: str) -> None:
        content = text.encode("utf-8", "surrogateescape")
        made = audience.csv(content) if kind == "csv" else audience.jsonl(content)
        audience.recipients_of(made)

    return read


def _imported(kind: Any, **changes: Any) -> Callable[[Aws], Callable[[Any], object]]:
    known: dict[str, Any] = {
        "format": kind,
        "channel": "mail",
        "id_prefix": "p",
    }
    options = Options(**{**known, **changes})

    def open_(_aws: Aws) -> Callable[[Any], object]:
        path = Path(tempfile.mkdtemp()) / "file"
        judge = Items(options, RULES.lanes, validator(), Previews(ROOT / "templates", mail_senders=()))

        def read(text: str) -> None:
            path.write_bytes(text.encode("utf-8", "surrogateescape"))
            with closing(Source(path)) as source:
                entries = FileEntries(source, options)
                if entries.header:
                    judge.check_header(entries.header)
                for entry in entries:
                    judge.judged(entry)

        return read

    return open_


def _load_settings(section: Any) -> None:
    load({"dev": section}, "dev")


class Crashed(Exception):
    """A request was answered with an internal error of Mailroom."""


def _answered(status: int) -> None:
    if status >= 500:
        raise Crashed(f"answered {status}")


def _api(aws: Aws) -> Callable[[Any], object]:
    api = people_api(FakeClock(), Path(tempfile.mkdtemp()))

    def ask(made: Mapping[str, Any]) -> None:
        aws.dynamodb.empty()  # type: ignore[attr-defined]
        _answered(api.ask(made).status)  # Fails for a response that is not in the API's description.

    return ask


def _post(body: Any) -> Item:
    return api_event("POST", "/messages", json.dumps(body), {"Content-Type": "application/json"})


CHANGE = {
    "topics": {
        "news": {"state": "out"},
        "offers": {"state": "in", "at": "2026-11-21T09:00:00.000Z", "evidence": "asked"},
    }
}


def _change(body: Any) -> Item:
    kind = {"Content-Type": "application/json"}
    return api_event("PATCH", "/people?recipient=ada@example.com", json.dumps(body), kind)


scalar_texts = strange_texts.map(lambda text: text.encode("utf-8", "replace").decode())
"""Texts that can be encoded as UTF-8."""
REQUESTS = [
    _post({"id": "m-1", "event_type": "mail", **RIGHT["mail"]}),
    _post({"id": "s-1", "event_type": "sms", **RIGHT["sms"]}),
    _post({"messages": ITEMS}),
    api_event("POST", "/messages", json.dumps(ITEMS[0]).encode(), {"Content-Type": "application/json"}),
    api_event("GET", "/messages/m-1?event_type=mail"),
    api_event("GET", "/messages?id=m-1"),
    api_event("POST", "/messages/m-1/cancel"),
    api_event("GET", "/people?recipient=ada@example.com"),
    api_event("GET", "/people?recipient=%2B16175551234"),
    _change(CHANGE),
]


@st.composite
def odd_requests(draw: st.DrawFn) -> Item:
    """Generate a request of which some parts differ from those of a usual caller."""
    made = copy.deepcopy(draw(st.sampled_from(REQUESTS)))
    for _ in range(draw(st.integers(1, 4))):
        part = draw(
            st.sampled_from(("rawPath", "body", "headers", "queryStringParameters", "isBase64Encoded"))
        )
        if part == "isBase64Encoded":
            made[part] = not made[part]
        elif part in ("rawPath", "body"):
            made[part] = (
                draw(nearly_valid_texts([made.get(part) or "/messages"])).encode("utf-8", "replace").decode()
            )
        else:
            name = draw(st.sampled_from(("content-type", "id", "event_type", "recipient")))
            made[part] = {**made.get(part, {}), name: draw(scalar_texts)}
    return made


def _requested(value: str) -> Item:
    return api_event("POST", "/messages", value, {"Content-Type": "application/json"})


def _twilio(_aws: Aws) -> Callable[[Any], object]:
    def ask(made: Any) -> None:
        door = feedback_callbacks.CallbacksDoor(FakeClock())
        door.created[feedback_words.SID] = NOW
        _answered(door.answers(made))

    return ask


def _signed(fields: Mapping[str, str]) -> Item:
    path = "/twilio/inbound" if "Body" in fields else feedback_callbacks.PATH
    return feedback_callbacks.callback_request({**fields}, path=path)


TEXT_FIELDS = {
    "MessageSid": feedback_words.SID,
    "From": "+16175551234",
    "To": "+12025550123",
    "Body": "STOP",
    "AccountSid": feedback_callbacks.ACCOUNT,
}
_MULTIPART = unsubscribing.multipart(("List-Unsubscribe", "One-Click"))
PAGES = [
    unsubscribing.unsubscribe_request(unsubscribing.token()),
    unsubscribing.posted_form(unsubscribing.token(), unsubscribing.ONE_CLICK),
    unsubscribing.posted_form(unsubscribing.token(), unsubscribing.ONE_CLICK, encoded=True),
    unsubscribing.posted_form(unsubscribing.token(), *_MULTIPART),
    unsubscribing.unsubscribe_request(unsubscribing.page_token()),
    unsubscribing.posted_form(unsubscribing.page_token(), {"unsubscribe": "news"}),
    unsubscribing.posted_form(unsubscribing.page_token(), {"nothing": "1"}),
]


def _page(aws: Aws) -> Callable[[Any], object]:
    page = PageSettings(topics={"news": Topic(), "offers": Topic()})
    door = unsubscribing.Door(aws, FakeClock(), page=page)
    return lambda made: _answered(door.status(made))


def _link(text: str) -> None:
    unsubscribing.tokens().read(text)


def _page_link(text: str) -> None:
    unsubscribing.tokens().open(text)


def _of_secret(right: list[Any], read: Callable[[Any], object], refusal: type[Exception]) -> Parser:
    return of_json(right, read, refusal, private=True)


def python(
    right: list[Any], open_: Callable[[Aws], Callable[[Any], object]], *refusals: type[Exception]
) -> Parser:
    """Return a parser of the Python values that Lambda has made from JSON."""
    return Parser(right, bent(right), open_, refusals)


_STAGES = [STAGES["dev"], STAGES["prod"]]
PARSERS: dict[str, Parser] = {
    "item": of_json([*ITEMS, *TEMPLATED], _validate_item, Invalid, Malformed),
    "fax gateway": of_json([fax_body()], _faxes, Invalid, Malformed),
    "schedule": of_json(CAMPAIGN, scheduled, Malformed, private=True),
    "collect": of_json(CAMPAIGN, collect_body, Malformed),
    "audience chunk": of_json([CHUNK], chunk_of, Malformed),
    "provider event": of_json(EVENTS, _events, Malformed, private=True),
    "provider answer": of_json(
        [{"sid": "SM1", "message": "no", "code": 21211}], _read_response, OutcomeUnknown
    ),
    "provider date": of_text(
        ["Sat, 21 Nov 2026 09:00:00 +0000", "2026-11-21T09:00:00Z"], _date, OutcomeUnknown
    ),
    "dead letter": of_json([*ITEMS, *EVENTS, *CAMPAIGN, CHUNK, fax_body()], _dead_letter),
    "reference": of_text(["bS0x", "bS0x.2"], Reference.read, Malformed),
    "mail address": of_text(ADDRESSES, _address, ValueError),
    "phone number": of_text(PHONES, _phone, ValueError),
    "url": of_text(URLS, _url, InvalidRequest),
    "unsubscribe link": of_text([unsubscribing.token()], _link, Malformed),
    "page link": of_text([unsubscribing.page_token()], _page_link, Malformed),
    "payload object": of_json(
        [{"text": "Hi", "subject": "Hello", "headers": {"X-A": "1"}}], _payload, Invalid
    ),
    "template variables": python([VARIABLES], _templates, Invalid),
    "template": Parser(TEMPLATES, nearly_valid_texts(TEMPLATES), _sources, (Invalid,), grown=None),
    "csv audience": Parser(
        FILES,
        nearly_valid_texts(FILES)
        | st.lists(st.sampled_from(PIECES_OF_FILES)).map(lambda each: FILES[0] + "".join(each)),
        lambda _aws: _audience("csv"),
        (Invalid,),
    ),
    "json lines audience": Parser(
        LINES, nearly_valid_texts(LINES), lambda _aws: _audience("jsonl"), (Invalid,)
    ),
    "csv import": Parser(FILES, nearly_valid_texts(FILES), _imported("csv"), (Refused,)),
    "json lines import": Parser(
        LINES,
        nearly_valid_texts(LINES)
        | bodies([json.loads(each) for text in LINES for each in text.splitlines()]),
        _imported("jsonl", channel=""),
        (Refused,),
    ),
    "api request": Parser(REQUESTS, odd_requests(), _api, (), grown=None),
    "api body": Parser(
        [*ITEMS, {"messages": ITEMS}],
        bodies([*ITEMS, *TEMPLATED, {"messages": ITEMS}]).map(_requested),
        _api,
        (),
        grown=lambda value: _requested(json.dumps(value)),
    ),
    "api change": Parser([CHANGE], bent([CHANGE]).map(_change), _api, (), grown=_change),
    "twilio request": python(
        [feedback_callbacks.callback_request(), feedback_callbacks.inbound_text()], _twilio
    ),
    "twilio form": Parser(
        [feedback_callbacks.FIELDS, TEXT_FIELDS],
        bent([feedback_callbacks.FIELDS, TEXT_FIELDS], scalar_texts).map(
            lambda fields: _signed({name: str(value) for name, value in fields.items()})
        ),
        _twilio,
        (),
        grown=lambda fields: _signed({name: str(value) for name, value in fields.items()}),
    ),
    "unsubscribe page": python(PAGES, _page),
    "settings": Parser(_STAGES, bent(_STAGES), lambda _aws: _load_settings, (SettingsError,), grown=None),
    "secret of twilio": _of_secret(
        [{"account_sid": "AC1", "auth_token": SECRET, "api_key": "", "api_key_secret": ""}],
        _account,
        InvalidSecret,
    ),
    "secret of links": _of_secret([{"key": SECRET * 3, "previous": [SECRET * 4]}], _links, InvalidSecret),
    "secret of webhooks": Parser(
        [KEY, f"whsec_{KEY}"],
        nearly_valid_texts([KEY, f"whsec_{KEY}", SECRET]),
        lambda _aws: lambda text: host_key(text, "a.example"),
        (InvalidSecret,),
        private=True,
    ),
    "secret of a database": _of_secret(
        [{"host": "h", "port": 5432, "username": "u", "password": SECRET, "dbname": "d"}], _login, LookupError
    ),
}
