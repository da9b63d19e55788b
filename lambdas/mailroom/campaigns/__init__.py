"""Campaigns: messages to many, composed from an audience. A campaign's own module imports from here."""

from mailroom.campaigns.audience import Fault, Found, Page, Recipient, Recipients

__all__ = ["Fault", "Found", "Page", "Recipient", "Recipients"]
