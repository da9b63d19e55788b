"""How clients of AWS are set up for what takes long, or comes in great numbers."""

from botocore.config import Config

_FUNCTION_SECONDS = 930
"""The longest that a function runs, and some: an invocation that was given up would go on all the same."""


def config_for_puts(workers: int) -> Config:
    """For many puts at once. What is repeated meets its own first."""
    return Config(
        connect_timeout=5,
        read_timeout=20,
        max_pool_connections=workers,
        retries={"mode": "standard", "total_max_attempts": 3},
        # Both are a third of what a put costs this machine, and items are checked before.
        parameter_validation=False,
        user_agent="mailroom",
    )


def config_for_invocations() -> Config:
    """For invocations that take as long as a function may, and are not repeated in secret."""
    return Config(read_timeout=_FUNCTION_SECONDS, retries={"total_max_attempts": 1})
