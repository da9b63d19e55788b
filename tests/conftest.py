"""Preparations of every test before the library is imported: no test ever reaches a real account."""

import gc
import os
import sys
from collections.abc import Generator, Iterator
from typing import Any

import botocore.session
import pytest
from botocore.loaders import Loader
from hypothesis import settings

from tests.support.cpu_seconds import cpu_seconds
from tests.support.dynamodb.against_moto import compared_with_moto
from tests.support.run_report import report_lines

os.environ.update(
    AWS_ACCESS_KEY_ID="test",
    AWS_SECRET_ACCESS_KEY="test",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_REGION="us-east-1",
    POWERTOOLS_SERVICE_NAME="test",
    POWERTOOLS_METRICS_NAMESPACE="Mailroom",
)

# The CDK would look at each template with an engine of its own, which takes five seconds to start in every
# process that synthesizes. It only warns. Tests look at templates with cdk-nag and cfn-lint.
os.environ["CDK_VALIDATION"] = "false"

# Many tests start processes. A process that may not write bytecode compiles every library again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A machine that does other work as well makes no test fail.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# The models of AWS's services are millions of small objects that stay. To look through them for garbage over
# and over takes more than a tenth of the time.
gc.set_threshold(100_000, 20, 100)

_new_loader = botocore.session.create_loader
_models: dict[object, object] = {}


def _loader(search_path_string: str | None = None) -> Loader:
    """moto gives each test a new session, which would find and read the same models once more."""
    loader = _new_loader(search_path_string)
    loader._cache = _models  # type: ignore[attr-defined] # as a session keeps them for all its clients
    return loader


botocore.session.create_loader = _loader

# A rich console takes the width from COLUMNS when it is created. Without it, the width is the same in every
# terminal.
os.environ.pop("COLUMNS", None)


@pytest.fixture(autouse=True)
def _like_moto(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compare the table double with moto in the double's own tests, and in all tests if `make oracle` runs
    them."""
    if "LIKE_MOTO" not in os.environ and request.path.stem != "test_dynamodb_double":
        yield
        return
    with compared_with_moto() as differences:
        yield
    assert not differences, "\n".join(differences)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave modules and tests, which stay until the end, out of every search for garbage: that is a third of
    the time which collecting twelve thousand tests takes."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


_cpu_before = cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the CPU time since the report before, which `make test` prints by folder and by file."""
    global _cpu_before
    report = yield
    now = cpu_seconds()
    vars(report)["cpu"], _cpu_before = now - _cpu_before, now
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The end of a run."""
    reports = (each for found in terminalreporter.stats.values() for each in found)
    terminalreporter.section("seconds of work")
    for line in report_lines(each for each in reports if isinstance(each, pytest.TestReport)):
        terminalreporter.line(line)
