"""An end in time for a whole exchange, and a socket that keeps to it byte by byte."""

import io
import socket
import time
from http.client import HTTPException

from mailroom.clock import Clock


class Deadline:
    """The end of an exchange, `seconds` from now."""

    def __init__(self, seconds: float, monotonic: Clock = time.monotonic) -> None:
        self._monotonic = monotonic
        self._end = monotonic() + seconds

    def left(self) -> float:
        """Seconds, more than none: fit for a socket's time-out. Raises TimeoutError."""
        left = self._end - self._monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def share(self, among: int) -> "Deadline":
        """A deadline for the first of so many that divide what is left."""
        return Deadline(self.left() / among, self._monotonic)

    def within(self, seconds: float) -> "Deadline":
        """The end in so many seconds, or this one if it is nearer. Raises TimeoutError."""
        return Deadline(min(seconds, self.left()), self._monotonic)


class AnswerTooLong(HTTPException):
    """More bytes than an answer may have."""


class BoundedStream(io.RawIOBase):
    """A socket's bytes, up to a number of them and to a deadline, however they drip."""

    def __init__(self, sock: socket.socket, deadline: Deadline, room: int) -> None:
        self._sock = sock
        self._deadline = deadline
        self._room = room

    def hurry(self, seconds: float) -> None:
        """From here on, no more than that."""
        self._deadline = self._deadline.within(seconds)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader hands in
        if not self._room:
            raise AnswerTooLong
        self._sock.settimeout(self._deadline.left())
        size = self._sock.recv_into(buffer[: self._room])
        self._room -= size
        return size
