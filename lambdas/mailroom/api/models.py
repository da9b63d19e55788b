"""What the API answers, for its own description: every answer really given is checked against these."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

_Moment = Annotated[str, Field(description="ISO 8601, UTC", examples=["2026-11-21T09:00:00.000Z"])]
_Reason = Annotated[dict[str, str], Field(examples=[{"code": "invalid", "message": "to: is missing"}])]


class FieldProblem(BaseModel):
    """One field at fault, what is wrong with it and what would be right."""

    field: Annotated[str, Field(examples=["messages[3].to"])]
    problem: Annotated[str, Field(examples=["'ada@' is not a mail address: its domain is not valid"])]


class EntryAnswer(BaseModel):
    """What became of one message of a list."""

    result: Annotated[
        Literal["accepted", "existed", "refused", "conflict", "failed"],
        Field(
            description="existed: the very same was accepted before. conflict: its id is used for another "
            "message, which stays. failed: a fault of ours; send it again."
        ),
    ]
    id: Annotated[str | None, Field(description="missing where the entry has no usable one")] = None
    event_type: str | None = None
    field: Annotated[str | None, Field(description="the attribute at fault")] = None
    problem: str | None = None
    href: Annotated[str | None, Field(description="where its status is")] = None


class ListAnswer(BaseModel):
    """What became of each message of a list, in its order; the counts say how many there are of each."""

    accepted: int
    existed: int
    refused: Annotated[int, Field(description="refused and in conflict")]
    failed: int
    messages: list[EntryAnswer]


class SingleAnswer(BaseModel):
    """A message that lies in the mailbox."""

    id: Annotated[str, Field(examples=["welcome-17"])]
    event_type: Annotated[str, Field(examples=["mail"])]
    result: Annotated[
        Literal["accepted", "existed"], Field(description="existed: the very same was accepted before")
    ]
    href: Annotated[
        str, Field(description="where its status is", examples=["/messages/welcome-17?event_type=mail"])
    ]


class Problem(BaseModel):
    """An error, by RFC 9457. If nothing of a list was taken, it has the list's answer as well."""

    type: Annotated[str, Field(examples=["about:blank"])]
    title: Annotated[str, Field(examples=["Unprocessable Entity"])]
    status: Annotated[int, Field(examples=[422])]
    detail: Annotated[str, Field(examples=["to: is missing; give `to` (or `email`) one address"])]
    errors: list[FieldProblem] | None = None
    event_types: Annotated[list[str] | None, Field(description="of 409: the messages with that id")] = None
    message_status: Annotated[str | None, Field(description="of 409: where the message is")] = None
    accepted: int | None = None
    existed: int | None = None
    refused: int | None = None
    failed: int | None = None
    messages: list[EntryAnswer] | None = None


class GatewayAnswer(BaseModel):
    """What API Gateway answers by itself, before anything of ours is asked."""

    message: Annotated[str, Field(examples=["Forbidden"])]


class HistoryLine(BaseModel):
    """One change of status."""

    at: _Moment
    status: str
    code: str | None = None


class StatusAnswer(BaseModel):
    """Where a message is. What is not known yet is left out."""

    id: str
    event_type: str
    status: Annotated[
        str,
        Field(
            description="ready: in the mailbox, and unknown to the ledger: not yet claimed or, if it was put "
            "more than 90 days ago, perhaps forgotten; forgotten: its times say that it is as old as that; "
            "the others as in the ledger"
        ),
    ]
    attempts: Annotated[int, Field(description="attempts that ended")]
    to: str | list[str] | None = None
    error: Annotated[_Reason | None, Field(description="why it was not sent")] = None
    trouble: Annotated[_Reason | None, Field(description="what keeps it from being sent now")] = None
    provider: str | None = None
    provider_id: Annotated[str | None, Field(description="its name there")] = None
    scheduled_for: _Moment | None = None
    updated_at: _Moment | None = None
    times: Annotated[dict[str, _Moment] | None, Field(description="startedAt, sentAt, deliveredAt …")] = None
    details: Annotated[dict[str, Any] | None, Field(description="bounce_type, segments …")] = None
    history: list[HistoryLine] | None = None
    callbacks: Annotated[dict[str, Any] | None, Field(description="how each status callback went")] = None
    recipients: Annotated[
        dict[str, Any] | None, Field(description="what became of each, where there are several")
    ] = None


ANSWERS: tuple[type[BaseModel], ...] = (SingleAnswer, ListAnswer, StatusAnswer, Problem, GatewayAnswer)
