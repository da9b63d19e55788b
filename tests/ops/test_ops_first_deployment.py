"""`deploy` in each state of an account: its offers, its actions, and what it leaves unchanged."""

import itertools
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from moto import mock_aws
from typer.testing import CliRunner, Result

from mailroom_ops import cli
from mailroom_ops.deploying import commands, preparing
from mailroom_ops.doctor.report import Diagnosis
from mailroom_ops.doctor.report import State as CheckState
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.identities import dkim_records
from mailroom_ops.shared.screen import NotDeployed
from tests.support.ops.doctor import ACCOUNT, REGION, Answer, Aws

SENDER, DOMAIN = "mailroom@example.com", "example.com"
"""The sender of the tests' stage."""
CURRENT = 33
NEEDED = 6
VERIFIED: dict[str, Any] = {"VerifiedForSendingStatus": True, "VerificationStatus": "SUCCESS"}
PENDING: dict[str, Any] = {
    "VerifiedForSendingStatus": False,
    "VerificationStatus": "PENDING",
    "DkimAttributes": {"Status": "PENDING", "Tokens": ["a1", "b2"], "SigningHostedZone": "dkim.example.net"},
}
FAILED = {**PENDING, "VerificationStatus": "FAILED"}
BOOTSTRAPS = {"none": 0, "old": NEEDED - 1, "lowest": NEEDED, "current": CURRENT, "unreadable": None}
IDENTITIES = {
    "none": None,
    "pending": PENDING,
    "failed": FAILED,
    "verified": VERIFIED,
    "unreadable": "denied",
}
CODES = {"unreadable": "AccessDeniedException", "throttled": "TooManyRequestsException"}
"""Errors of the look-up at SES, by state."""
OPTIONS = ((), ("--identity", "domain"), ("--bootstrap", "--identity", "address"))
PEOPLE = ("absent", "agreeing", "declining")


class State(NamedTuple):
    """Account, options and person before the command."""

    bootstrap: str = "current"
    identity: str = "verified"
    options: tuple[str, ...] = ()
    person: str = "absent"

    @property
    def questions(self) -> list[str]:
        """The questions that a person at a terminal is asked, in order."""
        bootstrap = self.bootstrap in ("none", "old") and "--bootstrap" not in self.options
        identity = self.identity == "none" and "--identity" not in self.options
        asked = {"bootstrap": bootstrap, "identity": identity, "wait": True}
        return [question for question, needed in asked.items() if needed]


class DeployWorld:
    """Account and the CDK's program, with what the command did to them."""

    def __init__(self, state: State, codes: Mapping[str, int]) -> None:
        """`codes` has the exit codes of the CDK's commands that fail."""
        self._state, self._codes = state, codes
        identity = IDENTITIES.get(state.identity)
        self.identities = {} if identity is None else {SENDER: identity}
        self.bootstraps: list[str] = []
        self.deployments: list[tuple[str, ...]] = []
        self.checks: list[str] = []

    def examine(self, _: object, stage: str, *__: object, **___: object) -> Diagnosis:
        """Examine a stage as `doctor` does."""
        self.checks.append(stage)
        if self._codes.get("doctor") == 2:
            raise NotDeployed("function of stage dev")
        state: CheckState = "failed" if "doctor" in self._codes else "ok"
        return Diagnosis(stage, ACCOUNT, REGION, "", state, {state: 1}, [])

    def find(self, parameters: dict[str, Any]) -> dict[str, Any] | str:
        """Answer GetEmailIdentity."""
        if self._state.identity in CODES:
            return CODES[self._state.identity]
        return self.identities.get(parameters["EmailIdentity"], "NotFoundException")

    def create(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Answer CreateEmailIdentity."""
        self.identities[parameters["EmailIdentity"]] = PENDING
        return {"VerifiedForSendingStatus": False, "DkimAttributes": PENDING["DkimAttributes"]}

    def version(self, _: dict[str, Any]) -> dict[str, Any] | str:
        """Answer GetParameter."""
        number = CURRENT if self.bootstraps else BOOTSTRAPS[self._state.bootstrap]
        if number is None:
            return "AccessDeniedException"
        return {"Parameter": {"Value": f"{number}"}} if number else "ParameterNotFound"

    def cdk(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `cdk bootstrap` or `cdk deploy`."""
        code = self._codes.get(command, 0)
        if command == "deploy":
            self.deployments.append(arguments)
        elif not code:
            self.bootstraps.append(arguments[-1])
        return subprocess.CompletedProcess([], code)


@pytest.fixture
def assembly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder with the manifest of one stack, as the CDK writes it."""
    monkeypatch.setattr(commands, "OUTPUT", tmp_path)
    monkeypatch.setattr(commands, "_stacks", lambda stage: [f"mailroom-{stage}-mailbox"])
    return write_manifest(tmp_path)


def write_manifest(
    folder: Path, parameter: str = preparing.DEFAULT_BOOTSTRAP, place: str = "unknown-account/unknown-region"
) -> Path:
    stack = {
        "type": "aws:cloudformation:stack",
        "environment": f"aws://{place}",
        "properties": {
            "bootstrapStackVersionSsmParameter": parameter,
            "requiresBootstrapStackVersion": NEEDED,
        },
    }
    roles = {"type": "aws:cloudformation:stack", "environment": "aws://unknown/unknown", "properties": {}}
    assets = {"type": "cdk:asset-manifest", "properties": stack["properties"]}
    artifacts = {"assets": assets, "mailroom-dev-deploy": roles, "mailroom-dev-mailbox": stack}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return folder


AGREED = {"bootstrap": "y\n", "identity": "y\n", "wait": "n\n"}
DECLINED = {"bootstrap": "n\n", "identity": "n\n", "wait": "n\n"}


def run_deploy(
    state: State, monkeypatch: pytest.MonkeyPatch, codes: Mapping[str, int] | None = None
) -> tuple[Result, DeployWorld]:
    """Run `deploy` in a state of the account."""
    world = DeployWorld(state, codes or {})
    answers: dict[str, Answer] = {
        "ssm.GetParameter": world.version,
        "sts.GetCallerIdentity": {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/ada"},
        "sesv2.GetEmailIdentity": world.find,
        "sesv2.CreateEmailIdentity": world.create,
    }
    for module in (commands, preparing):
        monkeypatch.setattr(module, "aws_session", lambda: Aws(answers))
    monkeypatch.setattr("mailroom_ops.deploying.cdk.run", world.cdk)
    monkeypatch.setattr("mailroom_ops.doctor.run.examine", world.examine)
    for module in (commands, preparing):
        monkeypatch.setattr(module, "at_a_terminal", lambda: state.person != "absent")
    replies = AGREED if state.person == "agreeing" else DECLINED
    typed = "".join(replies[question] for question in state.questions)
    return CliRunner().invoke(cli.app, ["deploy", *state.options], input=typed), world


@pytest.mark.usefixtures("assembly")
@pytest.mark.parametrize("bootstrap", BOOTSTRAPS)
@pytest.mark.parametrize("identity", IDENTITIES)
def test_deploy_creates_a_bootstrap_or_an_identity_only_if_it_is_missing_and_the_operator_allows_it(
    bootstrap: str, identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options, person in itertools.product(OPTIONS, PEOPLE):
        state = State(bootstrap, identity, options, person)
        result, world = run_deploy(state, monkeypatch)
        missing = bootstrap in ("none", "old")
        allowed = "--bootstrap" in options or person == "agreeing"
        assert world.bootstraps == ([f"aws://{ACCOUNT}/{REGION}"] if missing and allowed else []), state
        deploys = allowed or not missing
        assert bool(world.deployments) == deploys, state
        assert result.exit_code == (0 if deploys else 2), (state, result.output)
        kind = options[-1] if "--identity" in options else "address" if person == "agreeing" else ""
        created = {"address": {SENDER: PENDING}, "domain": {DOMAIN: PENDING}, "": {}}[kind]
        before = {} if IDENTITIES[identity] is None else {SENDER: IDENTITIES[identity]}
        assert world.identities == (created if identity == "none" and deploys else before), state
        assert world.checks == (["dev"] if deploys and person != "absent" else []), state
        if not deploys:
            assert (
                "Nothing was deployed. Go on with: mailroom deploy --stage dev --bootstrap" in result.stderr
            )


@pytest.mark.usefixtures("assembly")
def test_deploy_says_how_to_verify_an_identity_that_ses_has_not_verified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link, _ = run_deploy(State(identity="pending"), monkeypatch)
    assert f"SES has mailed a link to {SENDER}" in link.stdout
    expired, _ = run_deploy(State(identity="failed"), monkeypatch)
    assert f"aws ses verify-email-identity --email-address {SENDER}" in expired.stdout
    domain, _ = run_deploy(State(identity="none", options=("--identity", "domain")), monkeypatch)
    assert "  a1._domainkey.example.com  CNAME  a1.dkim.example.net\n" in domain.stdout
    unasked, _ = run_deploy(State(identity="none"), monkeypatch)
    assert f"{SENDER} has no identity in SES" in unasked.stdout
    assert "mailroom deploy --stage dev --identity address" in unasked.stdout


def test_dkim_records_have_the_zone_of_older_regions_if_the_response_of_ses_lacks_a_zone() -> None:
    assert [*dkim_records("a.example", {"Tokens": ["t"]})] == [
        "  t._domainkey.a.example  CNAME  t.dkim.amazonses.com"
    ]


@pytest.mark.parametrize("field", [{"Status": "FAILED"}, {"SigningAttributesOrigin": "EXTERNAL"}])
def test_dkim_records_are_not_listed_for_a_domain_that_ses_gave_up_or_that_has_its_own_keys(
    field: dict[str, str],
) -> None:
    assert [*dkim_records("a.example", {"Tokens": ["t"], **field})] == []


@pytest.mark.usefixtures("assembly")
def test_the_command_to_continue_after_a_failed_deployment_keeps_the_option_import_existing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, _ = run_deploy(State(options=("--import-existing",)), monkeypatch, {"deploy": 1})
    assert "go on with: mailroom deploy --stage dev --import-existing\n" in result.stderr


@pytest.mark.usefixtures("assembly")
@pytest.mark.parametrize(
    ("failing", "bootstrap", "code", "deployments"),
    [("bootstrap", "none", 2, 0), ("deploy", "current", 1, 1)],
)
def test_a_failed_step_ends_the_deployment_and_prints_the_command_to_continue(
    failing: str, bootstrap: str, code: int, deployments: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = State(bootstrap, options=("--bootstrap",), person="agreeing")
    result, world = run_deploy(state, monkeypatch, {failing: 1})
    assert (result.exit_code, len(world.deployments), world.checks) == (code, deployments, [])
    assert "go on with: mailroom deploy --stage dev" in result.stderr
    again, later = run_deploy(State(bootstrap, options=("--bootstrap",), person="agreeing"), monkeypatch)
    assert (again.exit_code, later.checks) == (0, ["dev"])


def test_deploy_does_not_create_a_bootstrap_that_only_the_stage_uses_and_names_the_guide(
    assembly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_manifest(assembly, "/cdk-bootstrap/mailprod/version")
    result, world = run_deploy(State("none", options=("--bootstrap",)), monkeypatch)
    assert (result.exit_code, world.bootstraps, world.deployments) == (2, [], [])
    assert "`mailroom docs deploy-from-ci`" in result.stderr


def test_deploy_examines_the_aws_account_in_the_region_of_the_settings_despite_the_environment(
    assembly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_manifest(assembly, place=f"{ACCOUNT}/eu-south-1")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    with mock_aws():
        monkeypatch.setenv("MOTO_ACCOUNT_ID", ACCOUNT)
        assert preparing.use_place_of(assembly) == ACCOUNT
        assert aws_session().client("ssm").meta.region_name == "eu-south-1"


def test_deploy_is_refused_if_the_credentials_are_of_another_account_than_the_settings(
    assembly: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_manifest(assembly, place="999999999999/unknown-region")
    result, world = run_deploy(State("none", "none", ("--bootstrap", "--identity", "address")), monkeypatch)
    assert (result.exit_code, world.bootstraps, world.deployments, world.identities) == (2, [], [], {})
    assert f"999999999999, but the credentials are of account {ACCOUNT}" in result.stderr


@pytest.mark.usefixtures("assembly")
@pytest.mark.parametrize("code", [1, 2])
def test_a_deployment_succeeds_although_the_check_by_doctor_after_it_fails(
    code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code 1: a finding. Code 2: the check itself could not run."""
    result, world = run_deploy(State(person="agreeing"), monkeypatch, {"doctor": code})
    assert (result.exit_code, len(world.deployments)) == (0, 1)
    assert ("no function of stage dev" in result.stderr) == (code == 2)
    assert result.stdout.splitlines()[-1].startswith("Next: mailroom send mail ")


@pytest.mark.usefixtures("assembly")
def test_ctrl_c_ends_the_wait_for_ses_and_the_deployment_still_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(preparing, "wait_until_verified", interrupt)
    result, world = run_deploy(State(identity="pending", options=("--wait",), person="agreeing"), monkeypatch)
    assert (result.exit_code, world.checks) == (0, ["dev"])


@pytest.mark.usefixtures("assembly")
def test_a_deployment_succeeds_and_reports_an_unchecked_identity_if_ses_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, world = run_deploy(State(identity="throttled"), monkeypatch)
    assert (result.exit_code, len(world.deployments)) == (0, 1)
    assert f"The identity of {SENDER} in SES was not checked" in result.stdout


@pytest.mark.usefixtures("assembly")
def test_the_output_of_deploy_ends_with_a_command_that_mails_the_senders_own_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, _ = run_deploy(State(person="agreeing"), monkeypatch)
    *_, last = result.stdout.splitlines()
    assert last.startswith(f"Next: mailroom send mail --to {SENDER} ")
    assert last.endswith("--stage dev")


def wait_for_statuses(statuses: Iterator[str], sleeps: list[float]) -> None:
    answers: dict[str, Answer] = {
        "sesv2.GetEmailIdentity": lambda _: {
            **PENDING,
            "VerificationStatus": (status := next(statuses)),
            "VerifiedForSendingStatus": status == "SUCCESS",
        }
    }
    preparing.wait_until_verified(Aws(answers).client("sesv2"), [SENDER], sleeps.append)


@pytest.mark.parametrize("end", ["SUCCESS", "FAILED"])
def test_the_wait_for_ses_ends_once_it_has_verified_the_sender_or_given_up(
    end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sleeps: list[float] = []
    statuses = iter(["PENDING", "TEMPORARY_FAILURE", end])
    wait_for_statuses(statuses, sleeps)
    assert (sleeps, [*statuses]) == ([preparing.POLL_SECONDS] * 2, [])
    assert ("has expired" in capsys.readouterr().out) == (end == "FAILED")
