"""Messages: their attributes, addresses and statuses, and the outcomes that a provider's response proves."""

CAMPAIGN_START = "campaign_start"
"""Attribute with the start of the campaign's run that composed the message: see `CampaignStart`. It is
defined here because producers, who import no package except boto3, need it as well."""
