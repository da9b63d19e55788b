"""Push notifications by Amazon SNS."""

from mailroom.channels.channel import Provider

PROVIDER = Provider(
    title="SNS",
    channel="push",
    needs="mailroom_stacks.providers.sns:needs",
    unpriced="the price depends on how much of SNS's free allowance is left",
)
