"""Models of the API's responses, for the API's description. Each response in a test is compared with them."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from mailroom.api.answers import UNUSED, EntryAnswer
from mailroom.api.people import MAX_TOPICS, In, Out
from mailroom.message.unless import Condition
from mailroom.recipients.choices import By

_Moment = Annotated[str, Meta(description="ISO 8601, UTC", examples=["2026-11-21T09:00:00.000Z"])]
_Reason = Annotated[
    dict[str, str], Meta(examples=[{"code": "invalid", "message": "to: is missing", "field": "to"}])
]


class FieldProblem(Struct):
    """An invalid field: the error, and a correction."""

    field: Annotated[str, Meta(examples=["messages[3].to"])]
    problem: Annotated[str, Meta(examples=["'ada@' is not a mail address: its domain is not valid"])]


class ListAnswer(Struct):
    """The result of each message of a list, in the order of the list, with the number of messages for each
    result.
    """

    accepted: int
    existed: int
    refused: Annotated[int, Meta(description="refused and in conflict")]
    failed: int
    messages: list[EntryAnswer]


class SingleAnswer(Struct):
    """The response for a message that is stored in the mailbox."""

    id: Annotated[str, Meta(examples=["welcome-17"])]
    event_type: Annotated[str, Meta(examples=["mail"])]
    result: Annotated[
        Literal["accepted", "existed"], Meta(description="existed: the very same was accepted before")
    ]
    href: Annotated[
        str, Meta(description="path of its status", examples=["/messages/welcome-17?event_type=mail"])
    ]
    unused: Annotated[list[str] | UnsetType, Meta(description=UNUSED)] = UNSET


class Problem(Struct):
    """An error in the form of RFC 9457.

    If no message of a list was accepted, it also has the fields of ListAnswer.
    """

    type: Annotated[str, Meta(examples=["about:blank"])]
    title: Annotated[str, Meta(examples=["Unprocessable Entity"])]
    status: Annotated[int, Meta(examples=[422])]
    detail: Annotated[str, Meta(examples=["to: is missing; give `to` (or `email`) one address"])]
    errors: list[FieldProblem] | UnsetType = UNSET
    event_types: Annotated[list[str] | UnsetType, Meta(description="of 409: the messages with that id")] = (
        UNSET
    )
    message_status: Annotated[str | UnsetType, Meta(description="of 409: where the message is")] = UNSET
    accepted: int | UnsetType = UNSET
    existed: int | UnsetType = UNSET
    refused: int | UnsetType = UNSET
    failed: int | UnsetType = UNSET
    messages: list[EntryAnswer] | UnsetType = UNSET


class GatewayAnswer(Struct):
    """A response that API Gateway sends itself, before it invokes the API's function."""

    message: Annotated[str, Meta(examples=["Forbidden"])]


class HistoryLine(Struct):
    """A change of status."""

    at: _Moment
    status: str
    code: str | UnsetType = UNSET


class StatusAnswer(Struct):
    """The status of a message. Attributes without a value are omitted."""

    id: str
    event_type: str
    status: Annotated[
        str,
        Meta(
            description="ready: in the mailbox, and unknown to the ledger: not yet claimed or, if it was put "
            "more than 90 days ago, perhaps forgotten; forgotten: its times say that it is as old as that; "
            "the others as in the ledger"
        ),
    ]
    attempts: Annotated[int, Meta(description="attempts that ended")]
    to: str | list[str] | UnsetType = UNSET
    error: Annotated[_Reason | UnsetType, Meta(description="why it was not sent")] = UNSET
    trouble: Annotated[_Reason | UnsetType, Meta(description="what keeps it from being sent now")] = UNSET
    provider: str | UnsetType = UNSET
    provider_id: Annotated[str | UnsetType, Meta(description="its name there")] = UNSET
    template: str | UnsetType = UNSET
    template_version: Annotated[int | UnsetType, Meta(description="of a published template")] = UNSET
    subject: Annotated[str | UnsetType, Meta(description="its beginning")] = UNSET
    scheduled_for: _Moment | UnsetType = UNSET
    updated_at: _Moment | UnsetType = UNSET
    times: Annotated[dict[str, _Moment] | UnsetType, Meta(description="putAt, sentAt, deliveredAt …")] = UNSET
    details: Annotated[dict[str, Any] | UnsetType, Meta(description="bounce_type, segments …")] = UNSET
    history: list[HistoryLine] | UnsetType = UNSET
    callbacks: Annotated[dict[str, Any] | UnsetType, Meta(description="how each status callback went")] = (
        UNSET
    )
    unless: Annotated[
        list[Condition] | UnsetType, Meta(description="outcomes of others, after which it is not sent")
    ] = UNSET
    recipients: Annotated[
        dict[str, Any] | UnsetType, Meta(description="what became of each, where there are several")
    ] = UNSET


class ListedMessage(Struct):
    """A message in a list. Attributes without a value are omitted."""

    id: str
    event_type: str
    status: str
    href: Annotated[str, Meta(description="where the rest is, below the API's URL")]
    put_at: _Moment | UnsetType = UNSET
    template: str | UnsetType = UNSET
    subject: Annotated[str | UnsetType, Meta(description="its beginning")] = UNSET
    to: str | list[str] | UnsetType = UNSET
    updated_at: _Moment | UnsetType = UNSET


class PageAnswer(Struct):
    """A page of messages, the newest first."""

    messages: list[ListedMessage]
    cursor: Annotated[
        str | UnsetType, Meta(description="asks for the next page; left out: it is the last")
    ] = UNSET
    looked_back_to: Annotated[
        _Moment | UnsetType, Meta(description="time of the oldest message that this page has looked at")
    ] = UNSET


class TopicState(Struct):
    """A choice of a person about a topic."""

    topic: str
    titles: Annotated[dict[str, str], Meta(description="by language, as in api.unsubscribe.topics")]
    state: Literal["in", "out"]
    at: Annotated[_Moment | UnsetType, Meta(description="of the choice, if the person has made one")] = UNSET
    by: Annotated[By | UnsetType, Meta(description="the way of the choice")] = UNSET


class StoppedChannel(Struct):
    """A channel on which a person gets no messages. This API cannot end it."""

    channel: str
    at: _Moment
    why: Literal["undeliverable", "asked_to_stop", "operator"]
    ends: Annotated[str, Meta(description="how it ends, in a sentence")]


class PersonAnswer(Struct):
    """Choices of a person. A person whom the stage does not know is without choices."""

    recipient: Annotated[str, Meta(description="as the stage compares it", examples=["ada@example.com"])]
    topics: Annotated[
        list[TopicState], Meta(description="of the stage, and others that the person has opted out of")
    ]
    stopped: list[StoppedChannel]


class ChangedAnswer(Struct):
    """Choices of a person about the topics of the request, after the request."""

    recipient: str
    topics: list[TopicState]


class Choices(Struct, forbid_unknown_fields=True):
    """New choices of a person, by topic."""

    topics: Annotated[dict[str, In | Out], Meta(min_length=1, max_length=MAX_TOPICS)]


ANSWERS: tuple[type[Struct], ...] = (
    *(SingleAnswer, ListAnswer, StatusAnswer, PageAnswer),
    *(Problem, GatewayAnswer),
    *(PersonAnswer, ChangedAnswer, Choices),
)
