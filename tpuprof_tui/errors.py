"""The one family of errors that reach the person at the terminal."""

from __future__ import annotations


class TpuprofError(Exception):
    """Something the user should be told in one sentence.

    Attributes:
        message: What was wrong and where, one sentence.
        hint: What to do next; may be empty.
        exit_code: Status of the process that ends with this error.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class UnreadableError(TpuprofError):
    """Nothing of the given path can be shown."""


class UsageError(TpuprofError):
    """The command was asked for something it cannot do."""
