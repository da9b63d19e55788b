"""Times without a setting, in two instances: for AWS, and for the stage on this machine, where seconds stand
for AWS's minutes."""

from msgspec import Struct


class Times(Struct, frozen=True, kw_only=True):
    """Times in seconds, and one number of tries; the defaults are those on AWS."""

    lease_margin: int = 60
    """Seconds for which a claim outlives its function's time-out, for clocks that disagree."""
    throttling: int = 3_600
    """Longest time for which AWS's services may refuse work without a dead letter."""
    provider_throttling: int = 14_400
    """Longest time for which a fax provider may refuse faxes, or AWS the work of feedback, without a dead
    letter."""
    backoff: int = 5
    """Wait after the first throttled receive; it doubles from there."""
    backoff_cap: int = 900
    """Longest wait between two receives."""
    misconfigured: int = 10
    """Wait after a fault of ours: short, so that the dead-letter queue's alarm comes soon."""
    record: int = 5
    """Part of a sender's time-out that is kept back after a submit to record its outcome."""
    longest_fax: int = 7_200
    """Time from a fax's submit to its end, the provider's own tries included; after it the fax is given up.
    Longer than the five minutes in which the provider may still start, and long enough for over 100 pages of
    a minute each."""
    fax_timeout: int = 900
    """Time-out of the fax sender, Lambda's maximum: a function that waits is cheaper than one that starts
    anew."""
    fax_submit: int = 20
    """Longest time of one request to the fax provider."""
    fax_record: int = 10
    """Part of the time-out that is kept back to record a fax's outcome, or to hand its record back."""
    fax_poll: float = 5
    """Time between two looks at a fax that is under way."""
    fax_visibility_margin: int = 60
    """Time for which the fax queue's visibility outlives the lease: a crash holds a line for no longer than
    both."""
    fax_mover_timeout: int = 60
    """Time-out of the function that puts faxes back on their line."""
    webhook_timeout: int = 60
    """Time-out of the sender of webhooks."""
    webhook_request: int = 15
    """Longest time of one request as a whole, from the name's resolution to the last byte. With `record` it
    fits into the time-out."""
    retry_after_cap: int = 3_600
    """Longest `Retry-After` of an endpoint that is honoured."""
    feedback_timeout: int = 60
    """Time-out of the function that reads providers' events."""
    campaigns_timeout: int = 120
    """Time-out of the functions that collect and compose. In it they connect, and then
    query twice (`collect`), or once and put messages to 500 people."""
    database_connect: int = 5
    """Longest time to make a connection to a campaign's database."""
    database_statement: int = 45
    """Longest time of one query of a campaign."""
    stream_retries: int = 10
    """Retries of a batch of a stream's records before it is given up."""
    dead_letters_timeout: int = 300
    """Time-out of the function that examines dead letters; ten seconds of it are kept for putting them
    back."""
    dead_letters_period: int = 3_600
    """Time between two examinations: an alarm that rings already gives no notice of further dead letters.
    Longer than the time-out: two passes would hide dead letters from each other."""

    @property
    def fax_watched(self) -> float:
        """Part of the time-out in which one invocation can watch a fax."""
        return self.fax_timeout - self.fax_submit - self.fax_record - self.fax_poll


AWS = Times()
LOCAL = Times(
    lease_margin=2,
    throttling=300,
    provider_throttling=300,
    backoff=1,
    backoff_cap=20,
    misconfigured=0,
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
