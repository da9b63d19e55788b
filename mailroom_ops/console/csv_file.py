"""CSV files of the team's console: a file goes to the payload bucket, and comes by a link of five minutes. A
function cannot stream a response, and the bucket deletes the file after a day."""

import secrets
from typing import TYPE_CHECKING

from mailroom.aws.clients import REGIONAL
from mailroom.content.payloads import CONSOLE
from mailroom.errors import quantity
from mailroom.telemetry import logger
from mailroom_ops.console.pages.messages import rules_at
from mailroom_ops.console.site import BYTE_ORDER_MARK, Download, Site, disposition

if TYPE_CHECKING:
    from mailroom_ops.console.viewer import Viewer

LINK_SECONDS = 300
MAX_SECONDS, MAX_CHARACTERS = 15.0, 4_000_000
"""Limits of a file, within the limits of a response of the function. Older messages are left out."""


def link_to(site: Site, download: Download, viewer: "Viewer") -> str:
    """Store a file as the person may see it, and return a URL by which anyone may read it for LINK_SECONDS.
    The name of an incomplete file says how many messages it has. Raises Refused, and botocore's errors."""
    deadline, lines, name = site.clock() + MAX_SECONDS, [BYTE_ORDER_MARK], download.name
    size = 0
    for line in download.lines:
        if size > MAX_CHARACTERS or site.clock() > deadline:
            name = name.replace(".csv", f", the newest {quantity(len(lines) - 2, 'message')}.csv")
            break
        lines.append(viewer.shown(line))
        size += len(line)
    bucket, key = rules_at(site).payload_bucket, f"{CONSOLE}/{secrets.token_urlsafe(32)}.csv"
    s3 = site.kept("regional s3", lambda: site.session.client("s3", config=REGIONAL))
    s3.put_object(
        Bucket=bucket,
        Key=key,
        Body="".join(lines).encode(),
        ContentType="text/csv; charset=utf-8",
        ContentDisposition=disposition(name),
    )
    logger.info("list downloaded", who=viewer.who, file=name)
    params = {"Bucket": bucket, "Key": key}
    return s3.generate_presigned_url("get_object", Params=params, ExpiresIn=LINK_SECONDS)
