"""AWS in process for each test that asks for it."""

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from tests.ops.ops_support import BUCKET, REGION, Shelf


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with mock_aws():
        s3 = boto3.client("s3", region_name=REGION)
        s3.create_bucket(Bucket=BUCKET)
        yield Shelf(s3)
