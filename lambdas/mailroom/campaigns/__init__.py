"""Campaigns: messages to the people of an audience. The classes that a campaign's own Python module needs can
be imported from this package."""

from mailroom.campaigns.audience import Fault, Found, Page, Recipient, Recipients

__all__ = ["Fault", "Found", "Page", "Recipient", "Recipients"]
