"""Peer with a planted fault: its worker removes a mail from its queue before it sends the mail, which loses
it, or after that, which sends it twice.

`python -m tests.unit.proof.planted_peer worker` runs the worker, with `producer` the producer. The queue is a
server in the process of the test.
"""

import http.client
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.proof.producer import State, serve


class Queue(ThreadingHTTPServer):
    """Queue whose mails come back if a new worker begins."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.port = int(self.server_address[1])
        self._changed = threading.Condition()
        self._waiting: list[str] = []
        self._taken: list[str] = []
        self._worker = 0
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()

    def put(self, name: str) -> str:
        with self._changed:
            self._waiting.append(name)
            self._changed.notify_all()
        return ""

    def begin(self, _: str) -> str:
        with self._changed:
            self._waiting = self._taken + self._waiting
            self._taken, self._worker = [], self._worker + 1
            self._changed.notify_all()
            return str(self._worker)

    def take(self, worker: str) -> str:
        """Wait for a mail, unless another worker has begun."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or worker != str(self._worker))
            if worker != str(self._worker):
                return ""
            self._taken.append(self._waiting.pop(0))
            return self._taken[-1]

    def remove(self, name: str) -> str:
        with self._changed:
            self._taken.remove(name)
        return ""

    def state(self, _: str) -> str:
        return " ".join(self._waiting + self._taken)


class Handler(BaseHTTPRequestHandler):
    server: Queue

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        response = getattr(self.server, self.path.strip("/"))(body).encode()
        head = f"HTTP/1.0 200 OK\r\nContent-Length: {len(response)}\r\n\r\n".encode()
        self.wfile.write(head + response)


def call(server: str, path: str, body: str = "") -> str:
    """Return the response of the server whose port is in a variable."""
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ[f"{server}_PORT"]))
    connection.request("POST", path, body)
    return connection.getresponse().read().decode()


def work() -> None:
    worker = call("QUEUE", "/begin")
    while name := call("QUEUE", "/take", worker):
        mail = {
            "FromEmailAddress": "mailroom@example.com",
            "Destination": {"ToAddresses": [f"{name}@example.com"]},
            "Content": {"Simple": {"Subject": {"Data": "Hello"}, "Body": {"Text": {"Data": "Hello."}}}},
        }
        if os.environ["PLANTED"] == "loss":
            call("QUEUE", "/remove", name)
        call("SES", "/v2/email/outbound-emails", json.dumps(mail))
        if os.environ["PLANTED"] == "double":
            call("QUEUE", "/remove", name)


def planted_state() -> State:
    return {"waiting": call("QUEUE", "/state"), "failed": ""}


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        work()
    else:
        serve(lambda names: [call("QUEUE", "/put", name) for name in names], planted_state)
