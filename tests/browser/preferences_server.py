"""The page of preferences by HTTP, with a table in memory, for tests in a browser: run by `.venv`.

It prints one line of JSON: a link to a page, by the name of its recipient. It ends with standard input.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mailroom.recipients.choices import Preferences
from mailroom.unsubscribe.application import Unsubscribe
from mailroom.unsubscribe.page import PageSettings, Topic
from tests.support.dynamodb import InMemoryDynamoDB
from tests.support.unit.unsubscribing import kept, links, secrets_with_key

TABLE = "preferences"
PAGE = PageSettings(
    brand="Example Books",
    languages={"de": {}, "ar": {"preferences_title": "اختر ما يصلك"}},
    topics={
        "news": Topic({"en": "News", "de": "Neues"}, {"en": "Once a month, what is new in the shop."}),
        "followers": Topic({"en": "New followers"}, {"en": "Each week, who follows you."}),
        "offers": Topic({"en": "Offers of a very long title that does not fit into one line of a telephone"}),
        "elsewhere": Topic({"en": "Events"}),
    },
)
RECIPIENTS = ("ada", "bob", "eve", "dan", "kim", "max", "zoe")


def main() -> None:
    """Serve until standard input ends."""
    dynamodb: Any = InMemoryDynamoDB()
    keys_of_table = [
        {"AttributeName": name, "KeyType": kind} for name, kind in (("recipient", "HASH"), ("topic", "RANGE"))
    ]
    dynamodb.create_table(
        TableName=TABLE,
        KeySchema=keys_of_table,
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("recipient", "topic")
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    preferences = Preferences(dynamodb, TABLE)
    application = Unsubscribe(preferences, kept(secrets_with_key()), PAGE)

    class Gateway(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
            answer = application.answer(
                {
                    "requestContext": {"http": {"method": self.command}},
                    "headers": {name.lower(): value for name, value in self.headers.items()},
                    "pathParameters": {"token": self.path.rpartition("/")[2]},
                    "body": body,
                }
            )
            self.send_response(answer["statusCode"])
            for name, value in answer["headers"].items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer["body"].encode())

        do_GET = do_POST = _answer  # noqa: N815 - names that the class calls

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sealed = links(url=f"http://127.0.0.1:{server.server_port}/unsubscribe")
    pages = {}
    for name in RECIPIENTS:
        recipient = f"{name}@example.com"
        preferences.opt_out(recipient, "elsewhere", "one-click")
        pages[name] = sealed.page_url(recipient)
    print(json.dumps(pages), flush=True)  # noqa: T201 - the test reads it
    sys.stdin.read()


if __name__ == "__main__":
    main()
