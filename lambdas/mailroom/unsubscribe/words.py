"""Words of the opt-out page and of the page with all topics, in the built-in languages."""

import msgspec
from msgspec import Struct


class Words(Struct, frozen=True, kw_only=True):
    """Words of the pages in a language. The page replaces `{recipient}`, `{topic}` and `{brand}`. On pages
    about an error, recipient and topic are empty."""

    asking_title: str = "No more “{topic}”?"
    asking: str = "{recipient} will then get no more messages about “{topic}”. Nothing has been changed yet."
    unsubscribe: str = "Unsubscribe"
    opted_out_title: str = "You are unsubscribed"
    opted_out: str = (
        "{recipient} gets no more messages about “{topic}”. One that is on its way already may still arrive."
    )
    subscribe: str = "Get them again"
    opted_in_title: str = "You are subscribed"
    opted_in: str = "{recipient} gets messages about “{topic}”."
    preferences_title: str = "Choose what you get"
    preferences: str = "{recipient} gets what is switched on."
    elsewhere: str = "This was switched off in another way. Please ask us if you want it again."
    nothing: str = "Nothing but what I must get"
    must: str = (
        "Receipts, codes and other messages without a topic still come. "
        "One that is on its way already may still arrive."
    )
    saved: str = "Saved."
    unknown_title: str = "This link does not work"
    unknown: str = "Perhaps the link is incomplete: please open it directly from the mail."
    refused_title: str = "That did not work"
    refused: str = "Please open the link in the mail again, and use the button on the page."
    failed_title: str = "Please try again"
    failed: str = (
        "We could not reach our records, and nothing has been changed. Please try again in a minute."
    )


GERMAN = Words(
    asking_title="„{topic}“ abbestellen?",
    asking="{recipient} bekommt dann keine Nachrichten zu „{topic}“ mehr. Noch ist nichts geändert.",
    unsubscribe="Abbestellen",
    opted_out_title="Abbestellt",
    opted_out=(
        "{recipient} bekommt keine Nachrichten zu „{topic}“ mehr. Was schon unterwegs ist, kann noch kommen."
    ),
    subscribe="Wieder bestellen",
    opted_in_title="Wieder bestellt",
    opted_in="{recipient} bekommt Nachrichten zu „{topic}“.",
    preferences_title="Was möchten Sie bekommen?",
    preferences="{recipient} bekommt, was eingeschaltet ist.",
    elsewhere="Das wurde auf anderem Weg abgeschaltet. Bitte fragen Sie uns, wenn Sie es wieder möchten.",
    nothing="Nur, was ich bekommen muss",
    must=(
        "Belege, Codes und andere Nachrichten ohne Thema kommen weiterhin. "
        "Was schon unterwegs ist, kann noch kommen."
    ),
    saved="Gespeichert.",
    unknown_title="Dieser Link funktioniert nicht",
    unknown="Vielleicht ist er unvollständig: Bitte öffnen Sie ihn direkt aus der Mail.",
    refused_title="Das hat nicht geklappt",
    refused="Bitte öffnen Sie den Link in der Mail noch einmal und benutzen Sie den Knopf auf der Seite.",
    failed_title="Bitte noch einmal versuchen",
    failed=(
        "Wir können gerade nichts speichern, und nichts ist geändert. "
        "Bitte versuchen Sie es in einer Minute noch einmal."
    ),
)
BUILT_IN = {"en": msgspec.structs.asdict(Words()), "de": msgspec.structs.asdict(GERMAN)}
"""Words of the built-in languages, which need no settings."""
