"""A stage for all tests of the pipeline: synthesized, deployed and started as by `make up`."""

from collections.abc import Iterator

import msgspec
import pytest

from mailroom.content.templates import Version
from mailroom.content.versions import CURRENT, Choice
from mailroom_local.stage import lifecycle
from mailroom_local.stage.workspace import Workspace
from tests.support.pipeline.faxes import MAX_ATTEMPTS, Faxed, faxed
from tests.support.pipeline.items import RINGS
from tests.support.pipeline.recorded import record_calls
from tests.support.pipeline.shared import Pipeline
from tests.support.pipeline.trouble import Trouble, had

PUBLISHED = {
    "endless": "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
    "prying": "{{ first_name.__class__.__mro__ }}",
    "letter": "Dear {{ first_name }}, version one",
}
"""Templates that the repository has none of, by name: the stage publishes them from its beginning."""
CHANGES = {
    "OutcomesFunctionName": {"MAX_ATTEMPTS": str(MAX_ATTEMPTS)},
    "SendFaxFunctionName": {"MAX_ATTEMPTS": str(MAX_ATTEMPTS)},
}
"""Other values in the environments of functions, from the beginning: each later change starts new
processes."""


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    workspace = Workspace(tmp_path_factory.mktemp("stage"))
    # A few more people than a page of the campaign has.
    running = lifecycle.start(workspace, lambda _: None, lifecycle.PEOPLE + 5)
    try:
        pipeline = Pipeline(workspace, running)
        record_calls(pipeline, CHANGES)
        publish_templates(pipeline)
        put_failing_webhook(pipeline)
        yield pipeline
    finally:
        lifecycle.stop(workspace)


@pytest.fixture(scope="session")
def ended(pipeline: Pipeline) -> tuple[Trouble, Faxed]:
    """Wait for the ends of all leases at the same time, once for all tests that need them."""
    faxes = faxed(pipeline)
    trouble = had(pipeline)
    faxes.until_ended(pipeline)
    return trouble, faxes


@pytest.fixture(scope="session")
def trouble(ended: tuple[Trouble, Faxed]) -> Trouble:
    """Return the trouble after its end."""
    return ended[0]


@pytest.fixture(scope="session")
def faxes(ended: tuple[Trouble, Faxed]) -> Faxed:
    """Return the faxes after their ends."""
    return ended[1]


def put_failing_webhook(pipeline: Pipeline) -> None:
    """Put a webhook whose endpoint always fails. Its alarm rings after the ninth try, ten seconds later, and
    its last try is forty seconds after that."""
    id_ = f"{RINGS}webhooks-failing"
    url = pipeline.receiver(f"fail/503/messages/{id_}")
    pipeline.put({"id": id_, "event_type": "webhook", "url": url, "payload": {}})


def publish_templates(pipeline: Pipeline) -> None:
    """Publish templates unchanged: `mailroom template put` would refuse the first two."""
    s3, bucket = pipeline.s3, pipeline.output("TemplatesBucketName")
    by, at = "arn:aws:iam::000000000000:user/eve", "2026-11-21T09:00:00Z"
    choices = {}
    for channel in ("mail", "sms"):
        for name, text in PUBLISHED.items():
            parts = {f"{name}/subject.txt": "A letter", f"{name}/body.txt": text}
            version = Version(channel, name, 1, parts, {}, by, at)
            s3.put_object(Bucket=bucket, Key=version.key, Body=msgspec.json.encode(version))
            choices[f"{channel}/{name}"] = Choice(1, by, at)
    s3.put_object(Bucket=bucket, Key=CURRENT, Body=msgspec.json.encode(choices))
