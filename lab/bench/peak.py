"""The mail sender's peak memory, in a process that imports nothing but the sender's own bundle."""

from lab import size
from lab.bench.functions import answer_at_once, context, queue_batch, report
from lab.bench.memory import most_megabytes

BATCHES = size(100, 2)


def main() -> None:
    """Send batches in this process, and report its megabytes."""
    from mailroom.aws import clients

    answer_at_once(clients.dynamodb(), clients.sqs(), clients.s3(), clients.sesv2(10.0))
    import send_mail

    for number in range(BATCHES):
        send_mail.handler(queue_batch(number * 10), context())
    report(round(most_megabytes(), 1))


if __name__ == "__main__":
    main()
