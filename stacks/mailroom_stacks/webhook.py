"""Webhooks: signed requests with messages and status callbacks, to any endpoint."""

import math

from constructs import Construct

from mailroom.channels.webhook.contract import tries_that_may_fail
from mailroom.environment import WebhookSender
from mailroom_stacks.channels import sender_fields
from mailroom_stacks.constructs.grants import Grant
from mailroom_stacks.constructs.naming import StageStack
from mailroom_stacks.constructs.stage_alarm import FIVE_MINUTES, AlarmText, counted, read_log, stage_alarm
from mailroom_stacks.constructs.storage import RANDOM_KEY, Secret, read_payloads
from mailroom_stacks.constructs.worker import Work, Worker
from mailroom_stacks.mailbox import MailboxStack
from mailroom_stacks.settings.settings import Settings
from mailroom_stacks.settings.webhook import webhook_rules

QUIET_PERIODS = 12
"""Number of periods of five minutes that the alarm of failing webhooks looks at, in addition to the longest
wait between two tries."""

SIGNING_OVERLAP_SECONDS = 86_400
"""Seconds for which requests are also signed with the previous value of the signing secret, so that receivers
have time to change their keys."""


class WebhookStack(StageStack):
    """Queue, sender and secret of webhooks. The queue is a fair queue of SQS, in which the group of a message
    is the host of its URL, so that an endpoint that is down does not delay webhooks to others."""

    def __init__(self, scope: Construct, settings: Settings, storage: MailboxStack) -> None:
        super().__init__(scope, settings, "webhook")
        self.secret = Secret(
            self,
            "KeysSecret",
            settings,
            name="webhook-keys",
            description="Secret from which each host's key is derived; do not share it. `mailroom "
            "webhook-key` prints a host's key, with which its receivers verify webhooks",
            # Never change how the key is generated: see Secret.
            generated=RANDOM_KEY,
            not_rotated="An operator rotates it by putting a new value; the previous value also signs for a "
            "day. Receivers need the new keys, so an operator must choose the time.",
        )
        self.worker = Worker(self, settings, self._work(settings, storage))
        keeps_failing(self, settings)

    def _work(self, settings: Settings, storage: MailboxStack) -> Work:
        webhook = settings.webhook
        times = settings.times
        rules = webhook_rules(webhook, times)
        return Work(
            queue="webhook",
            function="send-webhook",
            timeout_seconds=times.webhook_timeout,
            maximum_concurrency=webhook.maximum_concurrency,
            rules=rules,
            channel="webhook",
            grants=[
                # For a message with `unless`, the sender reads the outcomes of other messages.
                Grant(["dynamodb:UpdateItem", "dynamodb:BatchGetItem"], [storage.ledger.table_arn]),
                self.secret.read(),
                *read_payloads(self, settings),
            ],
            environment=WebhookSender(
                **storage.common,
                **sender_fields(
                    times,
                    "webhook",
                    webhook.on_unknown,
                    lease=rules.lease,
                    pace=0,
                    submit_seconds=times.webhook_request,
                    # The setting `delays_seconds` overrides these two fields, which every sender needs.
                    backoff_seconds=min(webhook.delays_seconds),
                    backoff_cap_seconds=max(webhook.delays_seconds),
                ),
                signing_secret_arn=self.secret.secret_arn,
                signing_overlap_seconds=SIGNING_OVERLAP_SECONDS,
                delays=webhook.delays_seconds,
                retry_after_cap_seconds=times.retry_after_cap,
                allowed_networks=webhook.allowed_networks,
                allowed_schemes=settings.url_schemes,
                allowed_ports=webhook.allowed_ports,
            ),
        )


def keeps_failing(stack: WebhookStack, settings: Settings) -> None:
    """Create an alarm that rings from the first failure of a try whose number exceeds `tries_that_may_fail`,
    until no such try has failed for longer than the longest wait between two tries. An endpoint that fails
    for days thus causes only one alarm."""
    webhook = settings.webhook
    longest = max(*webhook.delays_seconds, settings.times.retry_after_cap)
    periods = math.ceil(longest / FIVE_MINUTES) + QUIET_PERIODS
    tries = len(webhook.delays_seconds) + 1
    text = AlarmText(
        kind="webhooks-failing",
        meaning=f"An endpoint keeps failing: try {tries_that_may_fail(tries) + 1} of {tries}, or a "
        "later try, has failed. Callbacks to other endpoints are sent. Callbacks to this one wait for their "
        "next try, and become dead letters after the last.",
        next_step=f"{read_log(settings, 'send-webhook')} (lines with 'an endpoint keeps failing' name the "
        "host), and ask its owner; to end the callbacks, the endpoint must respond with 410",
    )
    failing = counted(settings, "send-webhook", "WebhooksFailing")
    stage_alarm(stack, "KeepsFailing", settings, text, failing, 1, periods=periods, at_least=1)
