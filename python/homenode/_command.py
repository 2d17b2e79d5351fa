"""Finds the command ``homenode`` and runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import errors

#: What a file system takes as a path.
PathLike = Union[str, "os.PathLike[str]"]

#: Names the command, or a folder with it.
VARIABLE = "HOMENODE"


def find(name: str = "homenode") -> Path:
    """The path of a command of homenode.

    It is looked for where :data:`VARIABLE` says, beside this Python (where a wheel puts it), and on the ``PATH``.
    """
    said = os.environ.get(VARIABLE)
    if said:
        path = Path(said)
        path = path / name if path.is_dir() else path.with_name(name)
        if path.is_file():
            return path
        raise errors.CommandMissing(f"cannot find {name}\n  tried: {path}, for {VARIABLE} is {said}")
    tried: List[str] = []
    folders = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    for folder in dict.fromkeys(folders):
        path = Path(folder) / name
        if path.is_file():
            return path
        tried.append(f"\n  tried: {path}")
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    raise errors.CommandMissing(
        f"cannot find {name}{''.join(tried)}\n  tried: PATH\n  help: install homenode (docs/install.md), "
        f"or set {VARIABLE} to the folder with {name}"
    )


@dataclass(frozen=True)
class Ended:
    """A command that ended."""

    #: Its words.
    command: Tuple[str, ...]
    #: Its exit status; negative where a signal ended it.
    status: int
    #: What it wrote to stdout.
    stdout: str
    #: What it wrote to stderr.
    stderr: str

    def error(self) -> errors.HomenodeError:
        """The exception for its status."""
        return errors.of_status(self.status, self.stderr, self.command)


def run(args: Sequence[Union[str, PathLike]], env: Optional[Dict[str, str]] = None) -> Ended:
    """Runs ``homenode`` with arguments, whatever its exit status."""
    command = [str(find()), *(os.fspath(a) for a in args)]
    # Notebooks ask for colours even where nobody reads them.
    env = {**os.environ, "NO_COLOR": "1", "CLICOLOR_FORCE": "0", **(env or {})}
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        check=False,
    )
    out, err = (s.decode("utf-8", "replace") for s in (done.stdout, done.stderr))
    return Ended(tuple(command), done.returncode, out, err)


def answer(args: Sequence[Union[str, PathLike]], schema: str, fail_if: bool = False) -> Tuple[Dict[str, Any], Ended]:
    """Runs ``homenode`` with arguments that print JSON; the JSON, and how the command ended.

    Statuses 0 and 3 are answers where JSON was printed. Status 1 is one where ``fail_if`` says that it is expected.
    """
    ended = run(args)
    if ended.status not in ((0, 1, 3) if fail_if else (0, 3)):
        raise ended.error()
    try:
        found = json.loads(ended.stdout)
    except ValueError:
        if ended.status:
            raise ended.error() from None
        raise errors.Failed(f"homenode printed no JSON: {ended.stdout[:200]!r}", 0, ended.command) from None
    check_schema(found, schema, ended.command)
    return found, ended


def check_schema(found: Any, schema: str, command: Sequence[str] = ()) -> None:
    """Refuses an object of another schema.

    >>> check_schema({"schema": "homenode/explain/1"}, "homenode/explain/1")
    >>> check_schema({"schema": "homenode/explain/9"}, "homenode/explain/1")
    Traceback (most recent call last):
    ...
    homenode.errors.UnknownSchema: the command speaks homenode/explain/9, and this package reads homenode/explain/1: ...
    """
    said = found.get("schema") if isinstance(found, dict) else None
    if said != schema:
        raise errors.UnknownSchema(
            f"the command speaks {said}, and this package reads {schema}: install both of one release", None, command
        )


def version() -> str:
    """What ``homenode --version`` says."""
    ended = run(["--version"])
    if ended.status:
        raise ended.error()
    return ended.stdout.strip()
