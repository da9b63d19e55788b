"""A stage with a console, for tests that use only the pages of this repository.

`.venv` runs it. It prints one line of JSON when it has started: the URLs of the consoles and of the
providers' simulators. Then each line of standard input is a command, and is answered with a line: {"put":
item} puts it into the mailbox, {"dead": {"queue": …, "body": …}} into a dead-letter queue, {"listed":
address} an address onto SES's own suppression list, and {"mailroom": [word, …]} runs that command, whose text
and exit code are the answer. The stage ends with standard input.
"""

import json
import os
import signal
import subprocess
import sys

from lab.harness.stage_client import StageClient
from mailroom_local.aws import LocalSession, patient
from mailroom_local.stage import lifecycle
from mailroom_local.stage.workspace import Workspace
from mailroom_stacks.paths import DOT_LOCAL

WORKSPACE = Workspace(DOT_LOCAL / "browser-stage")


def main() -> None:
    """Start, answer, stop whatever happens."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lifecycle.stop(WORKSPACE)  # the stage of an earlier run that was killed
    try:
        running = lifecycle.start(WORKSPACE, lambda _: None, people=5, console=True, sign_in=True)
        stage = StageClient(running)
        url, team = (lifecycle.printed_url(WORKSPACE, name) for name in ("console", "sign-in"))
        _say({"url": url, "team": team, "providers": running.endpoints.providers})
        for line in sys.stdin:
            command = json.loads(line)
            if "put" in command:
                item = command["put"]
                stage.delete(item["id"], item["event_type"])  # a test may fix what it has put
                stage.put(item)
            elif "mailroom" in command:
                words = [sys.executable, "-m", "mailroom_ops", *command["mailroom"], "--stage", "local"]
                ended = subprocess.run(
                    words,
                    env=os.environ | running.variables(),
                    stdin=subprocess.DEVNULL,  # a question must end the command
                    stdout=subprocess.PIPE,
                    text=True,
                    check=False,
                )
                _say({"text": ended.stdout, "code": ended.returncode})
                continue
            elif "listed" in command:
                ses = LocalSession().client(
                    "sesv2", endpoint_url=running.endpoints.providers, config=patient()
                )
                ses.put_suppressed_destination(EmailAddress=command["listed"], Reason="BOUNCE")
            else:
                dead = command["dead"]
                url = stage.sqs.get_queue_url(QueueName=f"mailroom-local-{dead['queue']}-dlq")["QueueUrl"]
                stage.sqs.send_message(QueueUrl=url, MessageBody=json.dumps(dead["body"]))
            _say({})
    finally:
        lifecycle.stop(WORKSPACE)


def _say(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
