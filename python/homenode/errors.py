"""What can go wrong, as exceptions: one class for each exit status of the command.

=========================  ======  ====================================================
class                      status  meaning
=========================  ======  ====================================================
:class:`ConditionHeld`          1  a ``fail_if`` condition holds
:class:`UsageError`             2  an argument makes no sense
:class:`PartialResult`          3  there is a part of a result, or none: it was interrupted
:class:`Failed`               125  homenode itself failed
:class:`CannotRun`            126  the program exists and cannot be run
:class:`NotFound`             127  there is no such program
:class:`Killed`             128+n  signal *n* ended the command
:class:`ProgramFailed`      other  a program that was to succeed did not
=========================  ======  ====================================================

The message of each is what the command said.
"""

from __future__ import annotations

import signal
from typing import Dict, Optional, Sequence, Tuple, Type


class HomenodeError(Exception):
    """The command ``homenode`` did not do what was asked."""

    def __init__(self, message: str, status: Optional[int] = None, command: Sequence[str] = ()) -> None:
        super().__init__(message)
        #: What the command said.
        self.message = message
        #: The exit status of the command. ``None`` where no command ran.
        self.status = status
        #: The command line.
        self.command: Tuple[str, ...] = tuple(command)

    def __reduce__(self) -> Tuple[type, Tuple[str, Optional[int], Tuple[str, ...]]]:
        # Executors send exceptions from process to process.
        return type(self), (self.message, self.status, self.command)


class ConditionHeld(HomenodeError):
    """A ``fail_if`` condition holds."""


class UsageError(HomenodeError, ValueError):
    """An argument makes no sense."""


class PartialResult(HomenodeError):
    """The result is not whole, and nothing of it could be read."""


class Failed(HomenodeError, RuntimeError):
    """homenode itself failed."""


class CannotRun(HomenodeError):
    """The program exists and cannot be run."""


class NotFound(HomenodeError):
    """There is no such program."""


class CommandMissing(NotFound):
    """The command ``homenode`` itself is nowhere."""


class Killed(HomenodeError):
    """A signal ended the command."""


class ProgramFailed(HomenodeError):
    """A program that was to succeed ended with another status."""


class UnknownSchema(HomenodeError):
    """The command is of another version than this package, and says things that this package cannot read."""


class MissingPackage(ImportError):
    """An optional package is not installed; the message says how to install it."""


class PartialWarning(UserWarning):
    """A recording or a result is not whole."""


_CLASSES: Dict[int, Type[HomenodeError]] = {
    1: ConditionHeld,
    2: UsageError,
    3: PartialResult,
    125: Failed,
    126: CannotRun,
    127: NotFound,
}


def message_of(stderr: str) -> str:
    """The last thing that the command said, without its name.

    A program's own words may stand before them, for ``explain`` passes them on.

    >>> message_of("of the program\\nhomenode: cannot read x\\n  tried: open x\\n  help: make it\\n")
    'cannot read x\\n  tried: open x\\n  help: make it'
    >>> message_of("error: unexpected argument '--x'\\n")
    "unexpected argument '--x'"
    """
    lines = stderr.rstrip().splitlines()
    for at in range(len(lines) - 1, -1, -1):
        for mark in ("homenode: ", "error: "):
            if lines[at].startswith(mark):
                return "\n".join([lines[at][len(mark) :]] + lines[at + 1 :]).rstrip()
    return "\n".join(lines[-5:]) or "homenode said nothing"


def of_status(status: int, stderr: str, command: Sequence[str]) -> HomenodeError:
    """The exception for an exit status.

    >>> of_status(2, "homenode: nothing to work on", ["homenode", "explain"])
    UsageError('nothing to work on')
    """
    if status < 0:
        status = 128 - status
    kind = _CLASSES.get(status)
    if kind is None and status > 128:
        try:
            name = signal.Signals(status - 128).name
        except ValueError:
            name = f"signal {status - 128}"
        return Killed(f"{name} ended it: {message_of(stderr)}", status, command)
    return (kind or ProgramFailed)(message_of(stderr), status, command)


def optional(module: str, extra: str) -> MissingPackage:
    """The exception for an optional package that is not there.

    >>> optional("polars", "polars")
    MissingPackage("polars is not installed: pip install 'homenode[polars]', or pip install polars")
    """
    package = module.split(".")[0]
    return MissingPackage(f"{package} is not installed: pip install 'homenode[{extra}]', or pip install {package}")
