"""Producer of django-post-office, whose worker is the command `send_queued_mail`, started by cron each
minute."""

from collections.abc import Sequence

import django
from django.core.management import call_command

from tests.proof.producer import State, serve


def main() -> None:
    django.setup()
    call_command("migrate", verbosity=0)
    from post_office import mail
    from post_office.models import STATUS, Email

    def put(names: Sequence[str]) -> None:
        for name in names:
            mail.send(f"{name}@example.com", "mailroom@example.com", subject="Hello", message="Hello.")

    def addresses(*statuses: int) -> str:
        return " ".join(email.to[0] for email in Email.objects.filter(status__in=statuses))

    def state() -> State:
        return {
            "waiting": addresses(STATUS.queued, STATUS.requeued),
            "failed": addresses(STATUS.failed),
        }

    serve(put, state)


if __name__ == "__main__":
    main()
