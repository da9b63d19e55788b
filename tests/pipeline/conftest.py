"""One stage for all tests of the pipeline: synthesized, deployed and started as `make up` does it."""

import io
import zipfile
from collections.abc import Iterator

import pytest

from local.stage import lifecycle
from local.stage.deploy import bundle_of
from local.stage.workspace import Workspace
from tests.support.pipeline.faxes import Faxed, faxed
from tests.support.pipeline.recorded import record
from tests.support.pipeline.shared import Pipeline
from tests.support.pipeline.trouble import Trouble, had

HARMFUL = {
    "endless": "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
    "prying": "{{ first_name.__class__.__mro__ }}",
}
"""Templates that the repository has none of, by name."""


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    workspace = Workspace(tmp_path_factory.mktemp("stage"))
    # A few more people than a page of the campaign has.
    running = lifecycle.start(workspace, lambda _: None, lifecycle.PEOPLE + 5)
    try:
        pipeline = Pipeline(workspace, running)
        record(pipeline)
        add_harmful_templates(pipeline)
        yield pipeline
    finally:
        lifecycle.stop(workspace)


@pytest.fixture(scope="session")
def ended(pipeline: Pipeline) -> Iterator[tuple[Trouble, Faxed]]:
    """What waits for leases to end: all of it at once, and once for all tests that look at what became of
    it."""
    with faxed(pipeline) as faxes, had(pipeline) as trouble:
        faxes.until_ended(pipeline)
        yield trouble, faxes


@pytest.fixture(scope="session")
def trouble(ended: tuple[Trouble, Faxed]) -> Trouble:
    """It is over."""
    return ended[0]


@pytest.fixture(scope="session")
def faxes(ended: tuple[Trouble, Faxed]) -> Faxed:
    """All have ended."""
    return ended[1]


def add_harmful_templates(pipeline: Pipeline) -> None:
    """Deploy both senders anew, with templates beside the repository's own."""
    code = io.BytesIO(bundle_of(pipeline.workspace.assembly, "send_mail.py").content())
    with zipfile.ZipFile(code, "a") as archive:
        for name, text in HARMFUL.items():
            archive.writestr(f"templates/mail/{name}/subject.txt", "A letter")
            archive.writestr(f"templates/mail/{name}/body.txt", text)
    for function in ("SendMailFunctionName", "SendMailBulkFunctionName"):
        pipeline.functions.update_function_code(
            FunctionName=pipeline.output(function), ZipFile=code.getvalue()
        )
