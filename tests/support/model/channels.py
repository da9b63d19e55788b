"""The channels that are explored: settings, and what may happen to their message."""

from tests.support.model.world import Channel

_FAX = Channel("fax", on_unknown="hold", looks_up=True, fax=True, crashes=0)
CHANNELS = {
    channel.name: channel
    for channel in (
        Channel("mail", crashes=3),
        Channel("mail, claimed together", together=True, crashes=3),
        Channel("mail, held", on_unknown="hold", crashes=3),
        Channel("mail, reopened", operator="reopen", crashes=1),
        Channel("mail, reopened by two", operator="reopen", operators=2, crashes=0),
        Channel("mail, held, reopened", on_unknown="hold", operator="reopen", crashes=1),
        Channel("mail, settled", operator="settle", crashes=1),
        Channel("mail, taken back", producer=True, scheduled=True, workers=2, crashes=1, holds=1),
        Channel("mail, waits", workers=2, crashes=0, holds=2),
        Channel("mail, waits, release dies", workers=2, crashes=1, holds=1),
        Channel(
            "mail, waits, reopened",
            operator="reopen",
            workers=1,
            crashes=0,
            producer=True,
            holds=2,
            stale=0,
        ),
        Channel("mail, restarted", operator="restart", producer=True, workers=2, crashes=1),
        Channel("mail, restarted by two", operator="restart", operators=2, workers=2, crashes=0),
        Channel(
            "mail, waits, restarted",
            operator="restart",
            workers=1,
            crashes=0,
            producer=True,
            holds=2,
            stale=0,
        ),
        Channel("mail by key", keyed=True),
        Channel("mail by key, held", on_unknown="hold", keyed=True),
        Channel("mail by key, held, another account", on_unknown="hold", keyed=True, accounts=2, crashes=1),
        Channel("text", looks_up=True),
        Channel("text, another account", looks_up=True, accounts=2),
        Channel("text, held, another account", on_unknown="hold", looks_up=True, accounts=2),
        Channel("mail, two providers", fallback=True, crashes=2),
        Channel("mail, two providers, held", fallback=True, on_unknown="hold", crashes=2),
        Channel("text, two providers", fallback=True, looks_up=True, crashes=2),
        _FAX._replace(crashes=1),
        _FAX._replace(name="fax, reopened", operator="reopen"),
        _FAX._replace(name="fax, restarted", operator="restart", workers=2),
        _FAX._replace(name="fax, settled", operator="settle", workers=2),
        _FAX._replace(name="fax, taken back", producer=True),
        _FAX._replace(name="fax, waits", workers=1, producer=True, holds=1),
    )
}
