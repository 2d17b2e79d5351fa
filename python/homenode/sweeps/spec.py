"""The description of a sweep: a TOML or JSON file, or a dictionary.

.. code-block:: toml

    programs = [
        "mine.hnrec",                                   # a recording
        { kernel = "heat", class = "S", threads = 4 },  # one of the papers' programs
        { command = ["./app", "8192"], name = "app" },  # a program built with homenode-cc
    ]
    machines = ["2s-xeon", "epyc-nps4"]                 # names of 'homenode machine list', or files
    policies = ["first-touch", "next-touch"]            # as 'homenode compare -p' takes them

    page = "4KiB"              # optional: the page size, else the smallest of each machine
    outstanding = 8            # optional: outstanding misses of a CPU
    coverage = 0               # optional: percent of latency that prefetching hides
    yardsticks = "bound"       # optional: bound or all

Programs and kernels are recorded once. Relative paths are relative to the file.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from .. import _command, errors
from .._command import PathLike
from ..commands import options


@dataclass(frozen=True)
class Program:
    """A program of a sweep: a recording, a kernel, or a command."""

    #: What the results call it.
    name: str
    #: A recording that is there.
    recording: Optional[str] = None
    #: A kernel, without ``kernel:``.
    kernel: Optional[str] = None
    #: A program and its arguments.
    command: Tuple[str, ...] = ()
    #: Problem class of a kernel.
    class_: Optional[str] = None
    #: OpenMP threads.
    threads: Optional[int] = None
    #: Further arguments of a kernel.
    args: Tuple[str, ...] = ()
    #: The folder in which a command runs.
    folder: Optional[str] = None

    @property
    def subject(self) -> List[str]:
        """What stands behind the options of ``homenode record``."""
        if self.kernel is not None:
            return [f"kernel:{self.kernel}", *(["--", *self.args] if self.args else [])]
        return ["--", *self.command]


@dataclass(frozen=True)
class Spec:
    """A sweep that was checked for form."""

    programs: Tuple[Program, ...]
    machines: Tuple[str, ...]
    policies: Tuple[str, ...]
    page: Optional[str] = None
    outstanding: Optional[int] = None
    coverage: Optional[int] = None
    yardsticks: Optional[str] = None

    @property
    def cells(self) -> int:
        """The number of rows of the result."""
        return len(self.programs) * len(self.machines) * len(self.policies)

    @property
    def how(self) -> Dict[str, Any]:
        """The options that every simulation gets."""
        return {k: getattr(self, k) for k in ("page", "outstanding", "coverage", "yardsticks")}


def words(how: Mapping[str, Any]) -> List[str]:
    """The options of a simulation, for ``homenode compare``."""
    found = options(**{k: v for k, v in how.items() if k != "yardsticks"})
    return found + ([f"--yardsticks={how['yardsticks']}"] if how.get("yardsticks") else [])


def load(source: Union[PathLike, Mapping[str, Any]]) -> Spec:
    """Reads a description and checks its form. Names are checked by :func:`check`.

    Raises:
        UsageError: the first thing that is wrong, and where it stands.
    """
    if isinstance(source, Mapping):
        return _spec(source, Path("."), "the description")
    path = Path(os.fspath(source))
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise errors.UsageError(f"cannot read {path}: {e}") from e
    try:
        found = json.loads(text) if path.suffix == ".json" else _toml(text)
    except ValueError as e:
        raise errors.UsageError(f"{path}: {e}") from e
    if not isinstance(found, Mapping):
        raise errors.UsageError(f"{path}: it holds no description of a sweep")
    return _spec(found, path.parent, str(path))


def _toml(text: str) -> Any:
    try:
        import tomllib as toml
    except ImportError:
        try:
            import tomli as toml  # type: ignore[no-redef,import-not-found,unused-ignore]
        except ImportError:
            raise errors.MissingPackage(
                "this Python reads no TOML: pip install tomli, use Python 3.11, or write the description as JSON"
            ) from None
    return toml.loads(text)


KEYS = ("programs", "machines", "policies", "page", "outstanding", "coverage", "yardsticks")
PROGRAM_KEYS = ("name", "recording", "kernel", "command", "class", "threads", "args")


def _spec(found: Mapping[str, Any], folder: Path, where: str) -> Spec:
    _known(found, KEYS, where)
    programs = found.get("programs")
    if not isinstance(programs, (list, tuple)) or not programs:
        raise errors.UsageError(f"{where}: programs is a list with at least one program")
    made = tuple(_program(p, folder, f"{where}: programs[{i}]") for i, p in enumerate(programs))
    _once([p.name for p in made], f"{where}: programs", "give each a name of its own: name = …")
    machines, policies = (_texts(found, key, where) for key in ("machines", "policies"))
    if not machines or not policies:
        raise errors.UsageError(f"{where}: machines and policies are lists with at least one name")
    machines = tuple(_machine(m, folder) for m in machines)
    _once(machines, f"{where}: machines", "name it once")
    _once(policies, f"{where}: policies", "name it once")
    for key, kind in (("page", str), ("outstanding", int), ("coverage", int), ("yardsticks", str)):
        if key in found and (not isinstance(found[key], kind) or isinstance(found[key], bool)):
            raise errors.UsageError(f"{where}: {key} is {'a text' if kind is str else 'a whole number'}")
    rest = {k: found[k] for k in KEYS[3:] if k in found}
    return Spec(made, machines, policies, **rest)


def _machine(name: str, folder: Path) -> str:
    """A file relative to the description, or a name as it stands.

    >>> _machine("2s-xeon", Path("/no/where"))
    '2s-xeon'
    """
    return str(folder / name) if (folder / name).is_file() else name


def _program(found: Any, folder: Path, where: str) -> Program:
    if isinstance(found, str):
        found = {"kernel": found[7:]} if found.startswith("kernel:") else {"recording": found}
    if not isinstance(found, Mapping):
        raise errors.UsageError(f"{where}: a program is the path of a recording, kernel:NAME, or a table")
    _known(found, PROGRAM_KEYS, where)
    kinds = [k for k in ("recording", "kernel", "command") if k in found]
    if len(kinds) != 1:
        raise errors.UsageError(f"{where}: it has one of recording, kernel and command, and not {len(kinds)} of them")
    kind = kinds[0]
    for key in ("recording", "kernel", "class", "name"):
        if key in found and not (isinstance(found[key], str) and found[key]):
            raise errors.UsageError(f"{where}: {key} is a text")
    command, args = (_texts(found, key, where) for key in ("command", "args"))
    if kind == "command" and not command:
        raise errors.UsageError(f"{where}: command is a list of words: the program and its arguments")
    allowed = {"recording": (), "kernel": ("class", "threads", "args"), "command": ("threads",)}[kind]
    useless = [k for k in found if k not in (kind, "name", *allowed)]
    if useless:
        raise errors.UsageError(f"{where}: {useless[0]} is not for a {kind}")
    threads = found.get("threads")
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise errors.UsageError(f"{where}: threads is a number from 1 on")
    if kind == "recording":
        path = str(folder / found["recording"])
        return Program(found.get("name", found["recording"]), recording=path)
    if kind == "kernel":
        parts = [found["kernel"], found.get("class"), threads and f"{threads} threads", *args]
        name = found.get("name", " ".join(str(p) for p in parts if p))
        return Program(name, kernel=found["kernel"], class_=found.get("class"), threads=threads, args=args)
    name = found.get("name", " ".join(command) + (f" {threads} threads" if threads else ""))
    return Program(name, command=command, threads=threads, folder=str(folder))


def _known(found: Mapping[str, Any], keys: Tuple[str, ...], where: str) -> None:
    for key in found:
        if key not in keys:
            raise errors.UsageError(f"{where}: there is no key {key}; there are {', '.join(keys)}")


def _texts(found: Mapping[str, Any], key: str, where: str) -> Tuple[str, ...]:
    value = found.get(key, ())
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) and v for v in value):
        raise errors.UsageError(f"{where}: {key} is a list of texts")
    return tuple(value)


def _once(names: Any, where: str, help: str) -> None:
    twice = [n for n in names if list(names).count(n) > 1]
    if twice:
        raise errors.UsageError(f"{where}: {twice[0]} stands there twice\n  help: {help}")


def check(spec: Spec) -> None:
    """Asks the command whether it knows all names, so that a sweep does not fail on the last row.

    Raises:
        HomenodeError: what the command said of the first name that it does not know.
    """
    kernels: Optional[List[str]] = None
    for program in spec.programs:
        if program.kernel is not None:
            if kernels is None:
                found, _ = _command.answer(["kernel", "list", "--json"], "homenode/kernel-list/1")
                kernels = [row["kernel"] for row in found["rows"]]
            if program.kernel not in kernels:
                raise errors.UsageError(f"there is no kernel {program.kernel}; there are {', '.join(kernels)}")
        elif program.command and shutil.which(_in(program.folder, program.command[0])) is None:
            raise errors.NotFound(f"there is no program {program.command[0]}")
        elif program.recording is not None and not Path(program.recording).is_dir():
            raise errors.UsageError(f"there is no recording {program.recording}")
    machines = [w for m in spec.machines for w in ("--machine", m)]
    policies = [w for p in spec.policies for w in ("--policy", p)]
    ended = _command.run(["compare", "--check", *machines, *policies, *words(spec.how), "--", "true"])
    if ended.status:
        raise ended.error()


def _in(folder: Optional[str], program: str) -> str:
    return str(Path(folder or ".") / program) if "/" in program else program
