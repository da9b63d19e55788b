"""The demo's progress, for people who watch it."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


class Bars(Progress):
    """A bar for each thing that is waited for."""

    def __init__(self, console: Console) -> None:
        columns = TextColumn("- {task.description:<28}"), BarColumn(), MofNCompleteColumn()
        super().__init__(*columns, console=console)

    def plan(self, *, mails: int, faxes: int, callbacks: int, finals: int, campaign: int) -> None:
        """How much there will be of each."""
        self._mails_put = self.add_task("mails put into the mailbox", total=mails)
        self._mails = self.add_task("mails sent, or rejected", total=mails)
        self._faxes_put = self.add_task("faxes put", total=faxes)
        self._faxes = self.add_task("faxes delivered, or given up", total=faxes)
        self._callbacks = self.add_task("callbacks received", total=callbacks)
        self._finals = self.add_task("all channels, what came back", total=finals)
        self._killed = self.add_task("campaign, until killed", total=campaign)
        self._campaign = self.add_task("campaign, started again", total=campaign)
        self._total = {"faxes": faxes, "callbacks": callbacks}

    def mail_put(self) -> None:
        self.advance(self._mails_put)

    def fax_put(self) -> None:
        self.advance(self._faxes_put)

    def mails_ended(self, count: int) -> None:
        self.update(self._mails, completed=count)

    def faxes_ended(self, count: int, received: int) -> None:
        """`count` includes the webhooks, which end first; `received` repeats of callbacks: bars stay full."""
        self.update(self._faxes, completed=min(count, self._total["faxes"]))
        self.update(self._callbacks, completed=min(received, self._total["callbacks"]))

    def final(self, count: int) -> None:
        self.update(self._finals, completed=count)

    def all_received(self, different: int) -> None:
        self.update(self._callbacks, completed=different)

    def composed(self, count: int) -> None:
        self.update(self._killed, completed=count)

    def campaign_ended(self, count: int) -> None:
        self.update(self._campaign, completed=count)
