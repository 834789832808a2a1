"""Exceptions that are reported to the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from .exit_status import NO_RESULT

#: Message when memory runs out.
NO_MEMORY: Final = "There is not enough memory for this capture."
#: Name of the package to install, by module, if they differ.
_INSTALLED_AS: Final = {"google": "protobuf"}


class TpuprofError(Exception):
    """An error that is reported to the user in one sentence.

    Attributes:
        message: What went wrong and where, one sentence.
        hint: What to do next; may be empty.
        exit_code: Exit status of the process.
    """

    exit_code = NO_RESULT

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class UnreadableError(TpuprofError):
    """No part of the given path can be shown."""


class UsageError(TpuprofError):
    """The command cannot do what was requested."""


class MissingPackageError(TpuprofError, ImportError):
    """A requested function needs a package that is not installed."""


@contextmanager
def requires_package(purpose: str, hint: str = "") -> Iterator[None]:
    """Context manager that turns a failed import into a `MissingPackageError`.

    Args:
        purpose: What needs the packages; the subject of the message.
        hint: What the user can do without them; may be empty.

    Raises:
        MissingPackageError: A package is not installed.
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
