"""Writes faxes straight to the fax queue, as an upstream application does, and PDFs to the payload bucket."""

import json

from local.aws import Endpoints, LocalSession, patient
from local.demo.scenarios.faxes import Fax

PDF = b"%PDF-1.7\n% one page, for the demo\n%%EOF\n"


class FaxPost:
    """The upstream application. `queue` is the fax queue's URL."""

    def __init__(self, endpoints: Endpoints, queue: str, bucket: str) -> None:
        session = LocalSession()
        self._sqs = session.client("sqs", endpoint_url=endpoints.aws, config=patient())
        self._s3 = session.client("s3", endpoint_url=endpoints.aws, config=patient())
        self._providers = endpoints.providers
        self._queue = queue
        self._bucket = bucket

    def write(self, fax: Fax) -> None:
        """One message, under the group that the application thinks right."""
        self._sqs.send_message(
            QueueUrl=self._queue,
            MessageBody=json.dumps(fax.body(self._providers, self._bucket)),
            MessageGroupId=fax.group or fax.line,
            MessageDeduplicationId=fax.id,
        )

    def store(self, fax: Fax) -> None:
        """Put the PDF of a fax where its `payload_ref` says."""
        self._s3.put_object(Bucket=self._bucket, Key=f"{fax.id}.pdf", Body=PDF)
