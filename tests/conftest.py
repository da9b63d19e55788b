"""What every test needs before the library is imported: no test ever reaches a real account."""

import os

os.environ.update(
    AWS_ACCESS_KEY_ID="test",
    AWS_SECRET_ACCESS_KEY="test",
    AWS_DEFAULT_REGION="us-east-1",
    POWERTOOLS_SERVICE_NAME="test",
    POWERTOOLS_METRICS_NAMESPACE="Mailroom",
)
