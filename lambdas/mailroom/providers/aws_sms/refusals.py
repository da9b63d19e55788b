"""Refusals of AWS End User Messaging, and the events that report a failed delivery.

A refusal's code is the error's `Reason`, or the exception's name if `Reason` is empty. The service's model
only names the reasons, so the words are those of the exception.
"""

from mailroom.message.outcome import table

_MODEL = "botocore 1.44.5, model of pinpoint-sms-voice-v2"
_GUIDE = "https://docs.aws.amazon.com/sms-voice/latest/userguide/"
_DATE = "2026-11-29"
_DENIED = "The request was denied because you don't have sufficient permissions to access the resource."
_QUOTA = "The request would cause a service quota to be exceeded."
_CONFLICT = "The requested action isn't valid for the current state or configuration of the resource."
_FIELD = "A validation exception for a field."

REFUSALS = table(
    _MODEL,
    _DATE,
    ("Throttling", "throttled", "Too many requests were sent during a certain amount of time."),
    ("AccessDenied", "account", _DENIED),
    ("ACCOUNT_DISABLED", "account", _DENIED),
    ("INSUFFICIENT_ACCOUNT_REPUTATION", "account", _DENIED),
    ("ResourceNotFound", "account", "A requested resource couldn't be found."),
    ("ServiceQuotaExceeded", "account", _QUOTA),
    ("MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT", "account", _QUOTA),
    ("MONTHLY_SPEND_LIMIT_REACHED_FOR_MEDIA", "account", _QUOTA),
    ("RESOURCE_NOT_ACTIVE", "account", _CONFLICT),
    ("MESSAGE_TYPE_MISMATCH", "account", _CONFLICT),
    # A pool or account without a number for the country of one recipient, or without any number. Seen for
    # one country: department-of-veterans-affairs/notification-api, issue 2628.
    (
        "NO_ORIGINATION_IDENTITIES_FOUND",
        "undecided",
        _CONFLICT,
    ),
    ("DESTINATION_PHONE_NUMBER_OPTED_OUT", "destination", _CONFLICT, "opted_out"),
    # The owner of the AWS account has blocked the number or the country, so the refusal is intended.
    (
        "DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION",
        "destination",
        _CONFLICT,
    ),
    (
        "DESTINATION_PHONE_NUMBER_BLOCKED_BY_PROTECT_NUMBER_OVERRIDE",
        "destination",
        _CONFLICT,
    ),
    # The message is at fault, not the settings: anyone can enter a number in another country.
    ("COUNTRY_CODE_MISMATCH", "destination", _FIELD),
    ("COUNTRY_NOT_ENABLED", "destination", _FIELD),
    ("DESTINATION_COUNTRY_BLOCKED", "destination", _FIELD),
    ("INTERNATIONAL_SENDING_NOT_SUPPORTED", "destination", _FIELD),
    ("INVALID_IDENTITY_FOR_DESTINATION_COUNTRY", "destination", _FIELD),
    # Countries differ in what they support and require, but a sender id may be invalid everywhere. Seen
    # for single countries: department-of-veterans-affairs/notification-api, pull request 2670.
    ("SENDER_ID_NOT_REGISTERED", "undecided", _FIELD),
    ("SENDER_ID_NOT_SUPPORTED", "undecided", _FIELD),
    ("SENDER_ID_REQUIRES_REGISTRATION", "undecided", _FIELD),
    # The message is at fault if the invalid field comes from the item, and otherwise the settings.
    ("CANNOT_PARSE", "message", _FIELD),
    ("FIELD_VALIDATION_FAILED", "message", _FIELD),
    ("INVALID_PARAMETER", "message", _FIELD),
    ("MAXIMUM_SIZE_EXCEEDED", "message", _FIELD),
    ("MEDIA_TYPE_NOT_SUPPORTED", "message", _FIELD),
) | table(
    f"{_GUIDE}verify-destination-phone-number.html",
    _DATE,
    (
        "DESTINATION_PHONE_NUMBER_NOT_VERIFIED",
        "destination",
        "In the sandbox you can only send messages to verified destination phone numbers.",
    ),
)
EVENTS = table(
    f"{_GUIDE}configuration-sets-event-types.html",
    _DATE,
    ("BLOCKED", "destination", "The recipient's device or carrier is blocking messages to that recipient."),
    ("TTL_EXPIRED", "message", "The time required to deliver the message exceeds the TTL value."),
    ("CARRIER_UNREACHABLE", "destination", "A transient error occurs on the carrier network."),
    ("INVALID", "destination", "The destination phone number is not valid."),
    ("INVALID_MESSAGE", "message", "The body of the message is invalid and can't be delivered."),
    ("CARRIER_BLOCKED", "message", "The recipient's carrier blocks the delivery of the message."),
    ("UNREACHABLE", "destination", "The recipient's device is unavailable."),
    ("SPAM", "message", "The recipient's carrier identifies the message as unsolicited commercial content."),
    ("UNKNOWN", "undecided", "A message fails for a reason that isn't covered by another event type."),
    ("PROTECT_BLOCKED", "destination", "Message blocked by protect configuration."),
    ("FILE_TYPE_UNSUPPORTED", "message", "A media file is not in a supported format."),
    ("FILE_SIZE_EXCEEDED", "message", "The media file is larger than 600 KB in size."),
    ("FILE_INACCESSIBLE", "account", "The service doesn't have permissions to access the file."),
)
"""Ends of the event types, after TEXT_ or MEDIA_."""
