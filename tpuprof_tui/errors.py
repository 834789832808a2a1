"""The one family of errors that reach the person at the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from .exit_status import NOTHING

#: What is said where memory ran out.
NO_MEMORY: Final = "There is not enough memory for this capture."
#: Packages whose modules have another name than they are installed by.
_INSTALLED_AS: Final = {"google": "protobuf"}


class TpuprofError(Exception):
    """Something the user should be told in one sentence.

    Attributes:
        message: What was wrong and where, one sentence.
        hint: What to do next; may be empty.
        exit_code: Status of the process that ends with this error.
    """

    exit_code = NOTHING

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


class MissingPackageError(TpuprofError, ImportError):
    """Something asked for needs a package that is not installed."""


@contextmanager
def needed_for(purpose: str, hint: str = "") -> Iterator[None]:
    """Imports below it that fail are told in one sentence.

    Args:
        purpose: What needs the packages, as the subject of the sentence.
        hint: What can be done without them; may be empty.

    Raises:
        MissingPackageError: A package is not installed, or does not fit another one.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module in ("", __package__):
            raise
        package = _INSTALLED_AS.get(module, module)
        advice = f"Install it: pip install {package}."
        raise MissingPackageError(
            f"{purpose} needs the package {package}, which is not installed.", f"{advice} {hint}".rstrip()
        ) from error
