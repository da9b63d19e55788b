"""Purpose of each condition of the ledger: without it a promise breaks after at least so many steps.

"deliver", "queue" and "lease" are rules of the code around the ledger.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    """Take away one condition, or one effect: a channel in which a promise is broken then, and the steps of
    the shortest way there."""

    without: str
    channel: str
    steps: int


MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "a status only moves forward": (
        Mutant("hold: no outcome", "fax, waits", 2),
        Mutant("observe: the status moves forward", "mail, reopened by two", 4),
        Mutant("refuse: no outcome", "fax, taken back", 2),
        Mutant("retry_later: no outcome", "fax, taken back", 5),
    ),
    "a claim's holder alone writes": (
        Mutant("cancel_claimed: the token is the caller's", "mail, restarted by two", 5),
        Mutant("checkpoint: the token is the caller's", "fax, reopened", 6),
        Mutant("complete: the token is the caller's", "mail, reopened by two", 6),
        Mutant("fail: the token is the caller's", "mail, reopened by two", 5),
        Mutant("hand_back: the token is the caller's", "fax, taken back", 6),
        Mutant("release: the token is the caller's", "mail, claimed together", 3),
        Mutant("retry_later: still claimed", "fax, taken back", 5),
        Mutant("reopen: the token is new", "mail, reopened by two", 5),
        Mutant("restart: the token is new", "mail, restarted by two", 5),
        Mutant("restart: there is no item", "mail, restarted by two", 3),
        Mutant("retry_later: the token is the caller's", "fax, taken back", 6),
        Mutant("suppress: the token is the caller's", "mail, reopened by two", 5),
    ),
    "who gets a claim finds no outcome": (
        Mutant("claim repeated: no outcome meanwhile", "mail, held", 7),
        Mutant("claim: no outcome", "fax, taken back", 2),
    ),
    "who is sure that nothing was sent is right": (
        Mutant("claim: earlier tries stay", "text, held, another account", 10),
        Mutant("claim: nobody has it, or the lease is over", "fax, reopened", 4),
        Mutant("claim: the attempt before has ended", "fax, taken back", 5),
        Mutant("claim: the first unsettled start stays", "mail, held", 6),
        Mutant("claim_new: there is no item", "mail, claimed together", 3),
        Mutant("deliver: evidence is asked for", "mail", 5),
        Mutant("hold: no provider has it", "fax, waits", 5),
        Mutant("hold: no try may have sent it", "mail, waits, release dies", 8),
        Mutant("deliver: not found counts where all was tried", "text, another account", 7),
        Mutant("deliver: what is not certain is claimed alone", "mail, claimed together", 3),
        Mutant("deliver: what was submitted is followed", "fax, taken back", 5),
        Mutant("hand_back: the provider's id stays", "fax, taken back", 5),
        Mutant("lease: is longer than a function runs", "fax, taken back", 5),
        Mutant("release: an earlier try stays in doubt", "mail", 8),
    ),
    "an attempt ends once, with its outcome": (
        Mutant("cancel: no outcome", "fax, waits", 2),
        Mutant("refuse: nobody ever had it", "fax, taken back", 6),
        Mutant("cancel: the attempt counts as ended", "fax, waits", 2),
        Mutant("cancel_scheduled: the attempt counts as ended", "mail, taken back", 1),
        Mutant("cancel_claimed: no outcome", "mail, restarted by two", 3),
        Mutant("cancel_claimed: the attempt counts as ended", "mail, restarted by two", 2),
        Mutant("restart: the attempt counts as ended", "mail, restarted by two", 4),
        Mutant("lose: the attempt counts as ended", "fax, waits", 2),
        Mutant("complete: no outcome", "mail, reopened by two", 4),
        Mutant("complete: the attempt counts as ended", "mail, reopened by two", 3),
        Mutant("fail: no outcome", "mail, reopened by two", 3),
        Mutant("fail: the attempt counts as ended", "mail, reopened by two", 2),
        Mutant("observe: the attempt counts as ended", "mail, reopened by two", 3),
        Mutant("observe: the attempt is the latest", "fax, taken back", 5),
        Mutant("observe: there is an outcome now", "mail, reopened by two", 3),
        Mutant("suppress: no outcome", "mail, reopened by two", 3),
        Mutant("suppress: the attempt counts as ended", "mail, reopened by two", 2),
    ),
    "never twice, but at `resend` after a crash between submit and record": (
        Mutant("deliver: `hold` gives up", "mail, held", 7),
        Mutant("deliver: a refusal of another request is held", "mail by key, held", 8),
        Mutant("deliver: a repeat is over in time", "mail by key, held", 8),
        Mutant("deliver: a request is repeated until its key is forgotten", "mail by key, held", 8),
        Mutant("deliver: a request that is repeated has the same key", "mail by key, held", 7),
    ),
    "two providers never send the same attempt": (
        Mutant("deliver: a try in doubt keeps its provider", "mail, two providers", 9),
    ),
    "no message is stuck": (
        Mutant("deliver: the oldest try in doubt decides", "mail, two providers, held", 7),
    ),
    "nothing is lost": (
        Mutant("queue: what is not done comes back", "mail", 3),
        Mutant("deliver: a hold is not repeated", "mail, waits", 5),
        Mutant("drop: its mark stands", "mail, waits", 3),
        Mutant("hand_over: its mark stands", "mail, waits", 4),
        Mutant("hold: the attempt before has ended", "mail, waits, reopened", 8),
    ),
    "a wait that cannot be released ends as it was read": (
        Mutant("cancel_scheduled: it waits", "mail, taken back", 3),
        Mutant("cancel_scheduled: its mark stands", "fax, waits", 4),
        Mutant("lose: it waits", "fax, waits", 4),
        Mutant("lose: its mark stands", "fax, waits", 4),
    ),
    "an entry of the index has its mark": (Mutant("move: its mark stands", "fax, waits", 3),),
    "an operator's word is written where it is still right": (
        Mutant("reopen: attempt and generation are those seen", "mail, reopened by two", 8),
        Mutant("reopen: the status is the one seen", "mail, reopened by two", 6),
        Mutant("restart: attempt and generation are those seen", "mail, restarted by two", 8),
        Mutant("restart: no provider has it", "fax, restarted", 8),
        Mutant("restart: no try may have sent it", "mail, restarted", 11),
        Mutant("restart: the status is the one seen", "mail, waits, restarted", 5),
        Mutant("settle: attempt and generation are those seen", "fax, settled", 9),
        Mutant("settle: no worker had it when it was seen", "fax, settled", 3),
        Mutant("settle: the claim is the one seen", "mail, settled", 9),
        Mutant("settle: the provider's id is the one seen", "fax, settled", 6),
    ),
    "what was accepted twice is known to be so": (
        Mutant("complete: the tries stay if it may have arrived twice", "mail", 8),
    ),
    "sent is what was accepted, cancelled what was not": (
        Mutant("cancel: no provider has it", "fax, waits", 5),
        Mutant("cancel: no try may have sent it", "mail, taken back", 8),
        Mutant("reopen: the provider's id goes", "mail, reopened by two", 7),
        Mutant("retry_later: the provider's id goes", "fax, taken back", 6),
    ),
}
"""By the promise that breaks."""
SECOND_PROTECTION = {
    "refuse: nobody has it": (
        "A claim leaves a token, and the token stays: `nobody ever had it` says it as well."
    ),
    "cancel: nobody has it": (
        "Whoever holds the message has a try: `no try may have sent it` says it as well. In the code a claim "
        "without an account has no try."
    ),
    "hold: nobody has it": "See above.",
    "cancel_scheduled: nobody has it": "`it waits` says it as well. So it is with the next seven.",
    "cancel_scheduled: no try may have sent it": "See above.",
    "cancel_scheduled: no provider has it": "See above.",
    "cancel_scheduled: no outcome": "See above.",
    "lose: nobody has it": "See above.",
    "lose: no try may have sent it": "See above.",
    "lose: no provider has it": "See above.",
    "lose: no outcome": "See above.",
    "checkpoint: no outcome": (
        "An event proved acceptance meanwhile. The id that `checkpoint` writes is right, and an "
        "outcome stays an outcome."
    ),
    "hand_back: no outcome": (
        "Whoever comes next finds the outcome before anything else. The same holds for `release`."
    ),
    "release: no outcome": (
        "See above. In the code the condition also keeps `trouble` out of an item that has ended."
    ),
    "hand_back: submitted": (
        "A worker hands back only what it follows, and what is followed has an id. The condition "
        "guards against a mistake in a channel's code."
    ),
    "release: still claimed": (
        "A worker releases once. If the response to another end of its claim was lost, its release must not "
        "bring the tries of that claim back."
    ),
    "release: its own try goes": (
        "A try that was put back was not sent, so its account cannot have the message. To ask there "
        "as well is only more careful; but each put-back would add an entry to the item."
    ),
    "reopen: there is an outcome": ("The status that was seen is an outcome's, and the status is compared."),
    "restart: nobody has it": "Whoever holds the message has a try, as for `cancel`.",
    "restart: no outcome": "The status that was seen is none of an outcome, and the status is compared.",
    "settle: no outcome": "The status that was seen is none of an outcome, and the status is compared.",
    "settle: the status is the one seen": (
        "While attempt, claim and id are the same, the status changes only by an outcome."
    ),
    "deliver: only what was not sent moves": (
        "The other provider's sender finds the try in doubt, and passes the message back. The condition "
        "spares the detour."
    ),
    "settle: the token is new": (
        "`no outcome` stops the worker that still follows the message. Without the new token, "
        "`hand_back: no outcome` is needed: each stands in for the other."
    ),
}
"""Conditions that the model does not need, not even if all but the last are gone at once, and why. The code
has them as a second protection."""
