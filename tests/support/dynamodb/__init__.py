"""DynamoDB in memory, for tests: tables of plain dictionaries, whose expressions moto parses.

A conditional write costs about 30 microseconds here, and a hundred times as much through botocore and moto.
`tests/unit/test_dynamodb_double.py` compares the results with those of moto. An unsupported request ends the
test by `pytest.fail`, which no `except Exception` of the product catches.
"""

from tests.support.dynamodb.client import InMemoryDynamoDB as InMemoryDynamoDB
from tests.support.dynamodb.client import in_memory_client as in_memory_client
from tests.support.dynamodb.client import in_memory_dynamodb as in_memory_dynamodb
from tests.support.dynamodb.client import paginator as paginator
