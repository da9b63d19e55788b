"""AWS's published numbers that estimates reckon with, each with its page. They differ by region and account,
and change: `mailroom doctor` compares those that a stage's settings rely on with the account's own."""

from typing import NamedTuple


class Quota(NamedTuple):
    """A limit that AWS publishes."""

    value: int
    name: str
    """AWS's name of the limit, or how to raise it."""


NEW_TABLE_WRITES = Quota(4_000, "DynamoDB: write units a second of a new table; warm it for more")
"""https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"""
TABLE_WRITES = Quota(40_000, 'DynamoDB: quota "Table-level write throughput limit"')
"""https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"""
LEAST_WORKERS, MOST_WORKERS = 2, 1000
"""The lowest and highest MaximumConcurrency of a queue's mapping:
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html."""
WHOLE_VCPU_MB = 1769
"""Lambda gives CPU in proportion to memory, one vCPU at so much, by "Configuring memory" of its guide."""
