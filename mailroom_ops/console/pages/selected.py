"""Page of an act on the messages that were selected in a list. An act shows what it would do first, and then
runs in the background."""

import secrets
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from mailroom.channels.previewed import Preview
from mailroom_ops.console.job import Job
from mailroom_ops.console.pages.form import document_of
from mailroom_ops.console.pages.message_acts import again_at, states_at
from mailroom_ops.console.pages.messages import deployed_at, reader_at
from mailroom_ops.console.site import Answer, Download, Goto, Request, Shown, Site, View, link
from mailroom_ops.messages.cancel import Canceller
from mailroom_ops.messages.failed_messages import failure_of
from mailroom_ops.messages.failures_csv import csv_lines
from mailroom_ops.messages.items import text_of
from mailroom_ops.messages.sets import AT_ONCE, LARGE, Act, MessageResult
from mailroom_ops.repair.correct import corrector_of
from mailroom_ops.repair.corrector import FIXED, OF_THE_OLD, Corrector
from mailroom_ops.shared.refusals import Refused
from mailroom_ops.shared.selected_messages import MessageRef
from mailroom_ops.shared.tables import parts

SHOWN = 50
_JOBS = 20
"""Maximum number of jobs that are kept to be shown."""
_AT_ONCE_SECONDS = 1.0
"""Seconds for which a request waits for its job, so that a small set is done without a page of progress."""
_TITLES = {"resend": "Send again", "cancel": "Cancel", "correct": "Correct"}
_STARTING = threading.Lock()


class SelectedChange(View, frozen=True):
    """Values of the form of a correction."""

    m: str
    count: int
    attributes: dict[str, str]
    """Attributes of the first message that can be changed."""


class SelectedAct(View, frozen=True):
    """Values of the page of a job."""

    job: "SetJob"
    preview: Preview | None
    """First correction; None for another act."""
    document: str
    """Token of the preview's HTML, for its frame; empty if there is none."""
    large: int = LARGE
    shown: int = SHOWN


class SetJob(Job):
    """Act on selected messages: the dry run and, once it is confirmed, the act itself."""

    def __init__(self, act: Act, fields: Mapping[str, str], refs: Sequence[MessageRef], stage: str) -> None:
        super().__init__(stage)
        self.act, self.fields, self.refs = act, fields, refs
        self.title = _TITLES[fields["act"]]
        self.confirmed = False
        self.looked: list[MessageResult] = []
        self.results: list[MessageResult] = []
        self.begin(self._look)

    @property
    def ready(self) -> list[MessageResult]:
        """Messages that can be done."""
        return [message for message in self.looked if message.result == "ready"]

    @property
    def left(self) -> list[MessageResult]:
        """Messages that are left out, or were not done."""
        messages = [*self.looked, *self.results]
        return [message for message in messages if message.result in ("refused", "unqueued")]

    @property
    def done(self) -> int:
        """Number of messages that were done now or before."""
        messages = [*self.looked, *self.results]
        return sum(message.result in ("resent", "cancelled", "corrected") for message in messages)

    def confirm(self) -> None:
        """Start the act itself."""
        self.confirmed = True
        self.begin(self._do)

    def _look(self) -> None:
        for step in parts(self.refs, AT_ONCE):
            if not self.stopping:
                self.looked += map(_alone, self.act.evaluate(step))

    def _do(self) -> None:
        for step in parts(self.ready, AT_ONCE):
            if not self.stopping:
                self.results += self.act.send(step)


def _alone(message: MessageResult) -> MessageResult:
    """Leave out a message that may arrive twice, because an operator has to check each of them."""
    return message.refused("it may arrive twice; open it to decide") if message.may_arrive_twice else message


def act(site: Site, request: Request) -> Answer:
    """Start the dry run of an act on selected messages, show it, and then do it. Raises Refused."""
    if request["job"]:
        job = site.job(SetJob, request["job"])
        if job is None:
            raise Refused("This set is not in the console any more. Select its messages again.")
        return _go_on(site, request, job)
    refs = _refs("" if request.form is None else request["m"])
    fields = {name: request[name] for name in ("act", "name", "changes", "m")}
    if fields["act"] == "csv":
        reader = reader_at(site)
        messages = (message for ref in refs for message in reader.find(ref.id, ref.event_type))
        rows = (failure_of(message, full=True) for message in messages)
        return Download(f"messages {site.stage}.csv", csv_lines(rows))
    if fields["act"] == "correct" and not fields["name"]:
        return Shown(SelectedChange(fields["m"], len(refs), _attributes(site, refs[0])), "Correct")
    return _begin(site, fields, refs)


def _begin(site: Site, fields: Mapping[str, str], refs: Sequence[MessageRef]) -> Answer:
    job, token = SetJob(_act(site, fields), fields, refs, site.stage), secrets.token_urlsafe(8)
    site.jobs[SetJob, token] = job
    old_keys = [key for key, old_job in site.jobs.items() if key[0] is SetJob and not old_job.running]
    for key in old_keys[:-_JOBS]:
        site.jobs.pop(key, None)
    job.wait(_AT_ONCE_SECONDS)
    return Goto(link("/selected/act", job=token))


def _go_on(site: Site, request: Request, job: SetJob) -> Answer:
    """Show a job; after a form stop it, repeat it, or do what it has shown. Raises Refused."""
    if request.form is None:
        preview = None
        if job.ready and isinstance(job.act, Corrector) and not job.confirmed and not job.running:
            preview = job.act.preview(job.ready[0])
        return Shown(SelectedAct(job, preview, document_of(site, preview)), job.title)
    if request["step"] == "stop":
        job.stopping = True
    elif request["step"] == "repeat":
        return _begin(site, job.fields, job.refs)
    else:
        with _STARTING:
            if job.confirmed or job.running or job.stopping or job.sentences:
                raise Refused("This set was started or stopped already. Look at it again.")
            if len(job.ready) > LARGE and request.typed("typed") != str(len(job.ready)):
                raise Refused(
                    f"Type the number of messages, {len(job.ready)}, to go on. Nothing was changed."
                )
            job.confirm()
        job.wait(_AT_ONCE_SECONDS)
    return Goto(link("/selected/act", job=request["job"]))


def _act(site: Site, fields: Mapping[str, str]) -> Act:
    match fields["act"]:
        case "resend":
            return again_at(site, force=False)
        case "cancel":
            return Canceller(states_at(site), site.clock, site.deeds)
        case "correct":
            changes = [line for line in fields["changes"].splitlines() if line.strip()]
            return corrector_of(site.session, deployed_at(site), fields["name"].strip(), changes)
    raise Refused("The form is incomplete. Open the list again.")


class _Ref(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Message in a form: a JSON array of its channel and id."""

    event_type: str
    id: str


def _refs(text: str) -> list[MessageRef]:
    """Parse the selected messages of a form, a line each. Raises Refused if there is none."""
    try:
        keys = [msgspec.json.decode(line, type=_Ref) for line in text.splitlines()]
    except msgspec.DecodeError:
        raise Refused("The form is incomplete. Open the list again.") from None
    if not keys:
        raise Refused("No message is selected. Go back, and select some.")
    return [MessageRef(key.id, key.event_type) for key in dict.fromkeys(keys)]


def _attributes(site: Site, ref: MessageRef) -> dict[str, str]:
    item: dict[str, Any] = (ref.event_type and reader_at(site).item(ref.id, ref.event_type)) or {}
    names = sorted(item.keys() - FIXED - OF_THE_OLD)
    return {name: text_of(item["event_type"], name, item[name]) for name in names}
