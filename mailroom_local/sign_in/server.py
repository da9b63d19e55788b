"""The console behind a sign-in, with an OpenID provider for tests, so that rights are tried on one machine.

It is the console that the setting `console` deploys: only its URL, its AWS clients and its provider differ.
"""

import argparse
import json
import socket
import subprocess
import sys
from pathlib import Path

import uvicorn

from mailroom.environment import ConsoleSettings
from mailroom_local.aws import STAGE, answers
from mailroom_local.processes import LOOPBACK, kept_ports, wait_until
from mailroom_local.sign_in import RIGHTS
from mailroom_local.stage.workspace import SIGN_IN_BIN
from mailroom_ops.console.function import team_of
from mailroom_ops.shared.deployed_stage import aws_session

_SECONDS = 60.0


def main() -> None:
    """Serve the provider and the console until SIGTERM. A line of the output is the console's URL."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ports", type=Path, required=True)
    port, provider_port = kept_ports(parser.parse_args().ports, 2)
    url, issuer = f"http://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{provider_port}"
    settings = ConsoleSettings(
        console_url=url,
        issuer=issuer,  # the setting `console` requires https
        client_id="mailroom",
        client_secret_arn="",
        scope="openid email profile",
        claim="groups",
        read=["read"],
        contents=["contents"],
    )
    app = team_of(settings, STAGE, aws_session(), lambda: "any")  # the provider accepts each secret but none
    config = uvicorn.Config(app, access_log=False, log_level="warning", server_header=False, lifespan="off")
    provider = subprocess.Popen(_provider(provider_port))
    try:
        if not wait_until(lambda: answers(f"{issuer}/jwks"), _SECONDS, poll=0.2):
            sys.exit("The OpenID provider does not answer.")
        with socket.create_server((LOOPBACK, port)) as listening:
            print(url, flush=True)
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        provider.terminate()


def _provider(port: int) -> list[str]:
    """Return the command that starts the provider."""
    command = [str(SIGN_IN_BIN / "oidc-provider-mock"), "--port", str(port)]
    for name, right in RIGHTS.items():
        person = {"sub": name, "name": name.title(), "groups": [right]}
        command += ["--user-claims", json.dumps(person)]
    return command


if __name__ == "__main__":
    main()
