"""Names of attributes that only Mailroom writes.

Producers import this module as well, so it must not import any package.
"""

CAMPAIGN_START = "campaign_start"
"""Attribute with the start of the campaign's run that composed the message: see
`mailroom.message.message.CampaignStart`."""
