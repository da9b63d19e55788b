"""What no setting says and nothing has measured: assumed, and named where a cost is shown."""

DAYS = 30.4
"""Of a month."""
YEAR_DAYS = 365
"""What is kept for ever is counted as so many days of it."""

MAILBOX_BYTES = 1_000
ITEM_OVERHEAD_BYTES = 100
"""What DynamoDB adds to an item that it keeps, by its developer guide."""
INDEX_BYTES = 200
"""Of the ledger's index of numbers, an entry for each text message and fax."""
LOG_BYTES = 1_000
"""An invocation's: Lambda's own three lines, and one of metrics."""
PDF_BYTES = 100_000

DISPATCH_SECONDS = 0.002
FEEDBACK_SECONDS = 0.02
CALLED_BACK_SECONDS = 0.05
API_SECONDS = 0.05
CALLBACK_SECONDS = 0.3
"""Of a function, for each message, event, call of Twilio's, request and callback."""

EVENTS = {"mail": 2, "sms": 3}
"""What providers tell of one message."""
CALLBACKS = {"mail": 2, "sms": 2, "push": 1, "fax": 1, "webhook": 1}
"""What a `callback_url` is told of one message that goes well."""
METRICS_A_SENDER, METRICS_BESIDE = 4, 3
"""Custom metrics of a stage where all goes well; each further name costs as much."""
POLLS = 5
"""Long polls of 20 s that Lambda keeps open at a queue, empty or not."""
POLL_SECONDS = 20


def sentences(*, forever: bool, callbacks: bool) -> list[str]:
    """All of it, for people."""
    kept = "for ever (counted: a year of it)" if forever else "as long as the settings say"
    told = ", each with a callback_url" if callbacks else "; callbacks are not in it (--callbacks)"
    return [
        "Batches are full, as in a backlog, and every message goes well at the first attempt" + told + ".",
        f"An item of the mailbox has {MAILBOX_BYTES:,} bytes and stays {kept}.",
        f"SES tells {EVENTS['mail']} events of a mail, an SMS provider {EVENTS['sms']} of a text message.",
        f"An invocation writes {LOG_BYTES:,} bytes of logs; a fax's PDF has {PDF_BYTES // 1000} KB, in the "
        "payload bucket.",
        f"Function time: {FEEDBACK_SECONDS:g} s an event, {API_SECONDS:g} s a request, "
        f"{CALLBACK_SECONDS:g} s a callback, {DISPATCH_SECONDS:g} s a message in dispatch.",
        f"An empty queue costs {POLLS} long polls of {POLL_SECONDS} s, day and night.",
        "No free allowance is taken off but the first 10 alarms; no taxes, support, traffic between regions.",
    ]
