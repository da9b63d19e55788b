"""Text messages by Acme."""

from mailroom.channels.channel import Provider

PROVIDER = Provider(
    title="Acme",
    channel="sms",
    client="tests.support.acme.provider.sender:AcmeSms",
    events={"acme": "tests.support.acme.provider.events:read_event"},
    url="https://sms.acme.example",
    credentials='{"token"}',
    one_of=("sender",),
    needed="a name in capitals, such as SHOP",
    sender="[A-Z]{3,11}",
    needs="tests.support.acme.stack:needs",
    routes={"/callbacks/acme": "callbacks", "/acme/inbound": "public"},
    signed_with="its private key",
    requests="tests.support.acme.stack:requests_function",
    checks={"credentials": "tests.support.acme.check:account_findings"},
    variable="ACME_SECRET_ARN",
    price=0.01,
    unpriced="",
    simulator="tests.support.acme.simulator:AcmeSimulator",
)
