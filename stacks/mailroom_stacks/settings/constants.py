"""Numbers and names of stages that commands need without the settings."""

BOUNCE_RATE_WARNING, BOUNCE_RATE = 0.02, 0.05
"""Shares of mails that bounce permanently. The first is for an early warning, and at the second SES reviews
the account. SES computes the share over a representative volume."""
COMPLAINT_RATE_WARNING, COMPLAINT_RATE = 0.0008, 0.001
"""Shares of mails that recipients report as spam: for an early warning, and at which SES reviews the
account."""
OF_FALLBACK = "-fallback"
"""End of the names of a second provider's queues and functions."""
SLOW_SECONDS = 5
"""Seconds from which on a message of a lane `normal` counts as slow. A message that SES throttles once takes
as long. See "How fast a code is" in `mailroom docs keep-codes-fast`."""
