"""Table of the console's pages, and the HTTP server that serves them."""

import secrets
import signal
import socket
import webbrowser
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

import uvicorn

from mailroom_ops.console.application import application
from mailroom_ops.console.guard import ADDRESS, Guard
from mailroom_ops.console.pages import (
    campaign_acts,
    campaigns,
    dead_letters,
    deeds,
    docs,
    failures,
    form,
    inbox,
    lanes,
    message,
    message_acts,
    messages,
    overview,
    people,
    people_acts,
    redrive,
    selected,
    templates,
)
from mailroom_ops.console.site import Page, Site
from mailroom_ops.costs.configured_lanes import lanes_of
from mailroom_ops.doctor.examined_stage import settings_or_trouble
from mailroom_ops.shared.screen import Refused, print_line
from mailroom_ops.shared.stage_queues import DeployedStage

if TYPE_CHECKING:
    import boto3

PAGES = (
    Page("/", "Overview", overview.show, menu=True),
    Page("/lanes", "Lanes", lanes.show, writes=True, of="Overview"),
    Page("/docs", "Documentation", docs.show, of="Overview"),
    Page("/messages", "Messages", messages.show, menu=True),
    Page("/message", "Message", message.show, of="Messages"),
    Page("/selected", "Selected messages", messages.pasted, writes=True, of="Messages"),
    Page("/selected/act", "Selected messages", selected.act, writes=True, of="Messages"),
    Page("/failures", "Failures", failures.show, menu=True),
    Page("/dead-letters", "Dead letters", dead_letters.show, menu=True),
    Page("/dead-letters/redrive", "Put back", redrive.redrive, writes=True),
    Page("/campaigns", "Campaigns", campaigns.show, menu=True),
    Page("/campaigns/start", "Start", campaign_acts.start, writes=True),
    Page("/campaigns/mail", "Mail", campaign_acts.frame),
    Page("/campaigns/change", "Change a run", campaign_acts.change, writes=True),
    Page("/templates", "Templates", templates.show, menu=True, writes=True),
    Page("/templates/mail", "Mail", templates.frame),
    Page("/message/mail", "Mail", message.frame, of="Messages"),
    Page("/message/receipt", "Receipt", message.receipt, of="Messages"),
    Page("/message/resend", "Send again", message_acts.resend, writes=True, of="Messages"),
    Page("/message/settle", "Record an outcome", message_acts.settle, writes=True, of="Messages"),
    Page("/message/cancel", "Cancel", message_acts.cancel, writes=True, of="Messages"),
    Page("/people", "People", people.show, menu=True),
    Page("/people/change", "Change", people_acts.change, writes=True),
    Page("/people/erase", "Erase", people_acts.erase, writes=True),
    Page("/deeds", "Activity", deeds.show, menu=True),
    Page("/send", "Send", form.show, menu=True, writes=True),
    Page("/send/mail", "Mail", form.frame),
    Page("/inbox", "Inbox", inbox.show, menu=True, local=True),
    Page("/inbox/mail", "Mail", inbox.mail, local=True),
    Page("/inbox/mail/html", "Mail", inbox.frame, local=True),
    Page("/inbox/message", "Message", inbox.message, local=True),
)
"""Table of the pages: to add a page, add a row. The menu has the rows with `menu`, in this order."""


def limits_of(stage: str) -> dict[str, float]:
    """Return the messages a second that cdk.json allows, by channel, without channels that are unlimited. It
    is empty if cdk.json cannot be read: a console may show a stage that another machine deploys."""
    settings = settings_or_trouble(stage)
    # The rate of a second provider is not added: a message is sent by one of the two.
    lanes = [] if isinstance(settings, str) else [lane for lane in lanes_of(settings) if not lane.is_fallback]
    unlimited = {lane.channel for lane in lanes if lane.rate is None}
    limits: dict[str, float] = defaultdict(float)
    for lane in lanes:
        limits[lane.channel] += lane.rate or 0
    return {channel: limit for channel, limit in limits.items() if channel not in unlimited}


def serve(session: "boto3.Session", stage: str, port: int, *, browser: bool) -> None:
    """Serve a stage's console until Ctrl-C or SIGTERM. Raises Refused if the port is taken, and NotDeployed
    if the stage is not deployed."""
    DeployedStage.of(session, stage)
    # asyncio sets TCP_NODELAY only if the protocol is named; without it, small packets wait for 40 ms.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((ADDRESS, port))
            listening.listen()  # before uvicorn starts, so that a browser that opens the URL at once waits
        except OSError as error:
            raise Refused(
                f"Port {port} cannot be used: {error.strerror}. Choose another with --port."
            ) from None
        port = listening.getsockname()[1]
        home, token = f"/{secrets.token_urlsafe(16)}", secrets.token_urlsafe(32)
        site = Site(session, stage, limits=partial(limits_of, stage))
        app = Guard(application(site, home, PAGES), port, home, token)
        config = uvicorn.Config(
            app, access_log=False, log_level="warning", server_header=False, timeout_graceful_shutdown=3
        )
        # uvicorn shuts down on a signal, and then raises it again. SIGTERM would end the process there, so it
        # is handled like Ctrl-C, which returns to this function.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            url = f"http://{ADDRESS}:{port}{home}/?token={token}"
            print_line(url)
            if browser:
                print_line(f"The console of {stage} opens in the browser. Ctrl-C ends it.")
                webbrowser.open(url)
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            return
        finally:
            signal.signal(signal.SIGTERM, before)
            for job in site.jobs.values():
                job.stopping = True
