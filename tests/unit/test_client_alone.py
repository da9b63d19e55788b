"""The client where nothing is installed but boto3."""

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.process

OTHERS = ("msgspec", "aws_lambda_powertools", "pydantic", "aws_cdk", "jinja2", "phonenumbers", "psycopg")


def run(script: str) -> str:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({OTHERS!r}))\n"
    done = subprocess.run(
        [sys.executable, "-c", blocked + textwrap.dedent(script)],
        env={"PYTHONPATH": "lambdas", "AWS_DEFAULT_REGION": "eu-central-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_client_needs_boto3_and_nothing_else() -> None:
    assert run("from mailroom.client import Mailroom; print(Mailroom('test').stage)") == "test"


def test_an_item_is_judged_there_too() -> None:
    said = run("""
        from mailroom.client import Mailroom
        print(Mailroom('test').send({'id': 'a', 'event_type': 'mail', 'v': {1: 2}}).error)
    """)
    assert said == "v: has the name 1, which is no string"


def test_the_blocked_packages_are_really_blocked() -> None:
    script = """
        try:
            import mailroom.message.message
        except ImportError as error:
            print(type(error).__name__)
    """
    assert run(script) == "ModuleNotFoundError"
