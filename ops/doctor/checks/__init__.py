"""All checks, in the order in which they are shown."""

from ops.doctor.checks import (
    alarms,
    clock,
    fax,
    functions,
    mail_account,
    mail_events,
    mail_senders,
    push,
    queues,
    secrets,
    sms,
    stacks,
    tables,
)
from ops.doctor.verdict import Check

CHECKS: tuple[Check, ...] = (
    Check("stacks", "deployed", stacks.deployed),
    Check("stacks", "settings", stacks.settings),
    Check("mail", "account", mail_account.account),
    Check("mail", "quota", mail_account.quota),
    Check("mail", "reputation", mail_account.reputation),
    Check("mail", "senders", mail_senders.senders),
    Check("mail", "configuration set", mail_events.configuration_set),
    Check("mail", "events", mail_events.events),
    Check("mail", "opt-out key", secrets.opt_out_key),
    Check("sms", "credentials", sms.credentials),
    Check("push", "applications", push.applications),
    Check("push", "topics", push.topics),
    Check("fax", "credentials", fax.credentials),
    Check("fax", "media", fax.media),
    Check("webhook", "signing key", secrets.signing_key),
    Check("functions", "mappings", functions.mappings),
    Check("functions", "as the settings say", functions.as_written),
    Check("functions", "concurrency", functions.concurrency),
    Check("queues", "dead letters", queues.dead_letters),
    Check("queues", "given up", queues.given_up),
    Check("alarms", "there", alarms.there),
    Check("alarms", "heard", alarms.heard),
    Check("alarms", "ringing", alarms.ringing),
    Check("tables", "protection", tables.protection),
    Check("tables", "expiry", tables.expiry),
    Check("clock", "this machine's", clock.own),
)

SUBJECTS = tuple(dict.fromkeys(each.subject for each in CHECKS))
"""What `--only` may name."""
