"""Times that no setting changes, in two instances: one for AWS, and one for the stage on this machine, where
seconds replace minutes."""

from msgspec import Struct

WHOLE_VCPU_MB = 1769
"""Memory in MiB of a function with a whole vCPU. A function's share of a vCPU is proportional to its memory:
https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html."""


class Times(Struct, frozen=True, kw_only=True):
    """Times in seconds, and one number of retries. The defaults are those on AWS."""

    lease_margin: int = 60
    """Time by which a claim's lease is longer than the function's time-out, because clocks differ."""
    throttling: int = 3_600
    """Longest time for which AWS services may throttle requests before messages become dead letters."""
    provider_throttling: int = 14_400
    """Longest time for which a fax provider may throttle faxes, or AWS the function for providers' events,
    before messages become dead letters."""
    backoff: int = 5
    """Wait after the first throttled receive; it doubles with each further receive."""
    backoff_cap: int = 900
    """Longest wait between two receives."""
    misconfigured: int = 20
    """Wait after a fault of the configuration. It is short, so that the alarm of the dead-letter queue rings
    soon, but long enough for a single message not to set off the alarm `tries-failing`."""
    urgent_timeout: int = 25
    """Least time-out of the senders of a lane normal. After a crash, a code waits for six times as long."""
    bulk_timeout: int = 60
    """Least time-out of the senders of a lane bulk. A longer time allows larger batches at a low rate."""
    preparation: float = 1
    """CPU time to prepare the slowest message: 0.9 s for the slowest template that is not refused, and less
    than 0.1 s to read and parse the largest payload, or the largest attachments."""
    record: int = 5
    """Part of a sender's time-out that is reserved for recording the outcome after a submit."""
    longest_fax: int = 7_200
    """Longest time from the submit of a fax to its end, including the provider's own tries; then the fax is
    given up. It is longer than the five minutes within which the provider may start, and enough for over 100
    pages of a minute each."""
    fax_timeout: int = 900
    """Time-out of the fax sender, Lambda's maximum: a function that waits costs less than starting another
    one."""
    fax_submit: int = 20
    """Longest time of one request to the fax provider."""
    fax_record: int = 10
    """Part of the time-out that is reserved for recording a fax's outcome, or for returning its record to the
    queue."""
    fax_poll: float = 5
    """Time between two requests for the status of a fax."""
    fax_visibility_margin: int = 60
    """Time by which the visibility timeout of the fax queue is longer than the lease. After a crash, a line
    is locked for the lease and this margin."""
    fax_mover_timeout: int = 60
    """Time-out of the function that moves faxes from the retry queue back into the fax queue."""
    webhook_timeout: int = 60
    """Time-out of the function that sends webhooks."""
    webhook_request: int = 15
    """Longest time of one whole request, from the DNS lookup to the last byte of the response. Together with
    `record` it is shorter than the time-out."""
    retry_after_cap: int = 3_600
    """Longest wait that an endpoint can request by `Retry-After`."""
    feedback_timeout: int = 60
    """Time-out of the function that reads providers' events."""
    campaigns_timeout: int = 120
    """Time-out of the functions `collect` and `compose`. Within it, `collect` connects to a database and
    queries it twice. `compose` connects, queries once, and puts messages to up to 500 people into the
    mailbox."""
    database_connect: int = 5
    """Longest time to connect to a campaign's database."""
    database_statement: int = 45
    """Longest time of one query of a campaign."""
    stream_retries: int = 10
    """Number of retries of a batch of stream records before it is given up."""
    dead_letters_timeout: int = 300
    """Time-out of the function that examines dead letters. Ten seconds of it are reserved for returning them
    to their queue."""
    dead_letters_period: int = 3_600
    """Time between two examinations of dead letters. They are repeated because an alarm that already rings
    sends no notification of further dead letters. The time is longer than the time-out, because two
    examinations at a time would hide dead letters from each other."""

    @property
    def fax_watched(self) -> float:
        """Part of the fax sender's time-out in which one invocation can watch a fax."""
        return self.fax_timeout - self.fax_submit - self.fax_record - self.fax_poll


AWS = Times()
LOCAL = Times(
    lease_margin=2,
    throttling=300,
    provider_throttling=300,
    backoff=1,
    backoff_cap=20,
    misconfigured=0,
    urgent_timeout=13,
    bulk_timeout=13,
    preparation=0.1,
    record=2,
    longest_fax=301,
    fax_timeout=8,
    fax_submit=4,
    fax_record=2,
    fax_poll=0.3,
    fax_visibility_margin=2,
    fax_mover_timeout=10,
    webhook_timeout=20,
    webhook_request=5,
    retry_after_cap=60,
    feedback_timeout=20,
    campaigns_timeout=20,
    database_connect=2,
    database_statement=5,
    stream_retries=4,
    dead_letters_timeout=50,
    dead_letters_period=300,
)
