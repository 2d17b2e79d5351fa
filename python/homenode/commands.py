"""The commands as functions."""

from __future__ import annotations

import os
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any, List, Optional, Sequence, Union

from . import _command, errors
from ._command import PathLike
from .results import Change, Comparison, Explanation, Recorded

#: What a command works on: a recording, the name of a kernel (``kernel:nas-cg``), or a program and
#: its arguments as a list of words.
Subject = Union[PathLike, Sequence[str], Any]


def words_of(what: Subject) -> List[str]:
    """What stands behind the options of a command line.

    >>> words_of("mine.hnrec"), words_of("kernel:heat"), words_of(["./app", "-n", "8"])
    (['mine.hnrec'], ['kernel:heat'], ['--', './app', '-n', '8'])
    """
    path = getattr(what, "path", what)
    if isinstance(path, (str, os.PathLike)):
        text = os.fspath(path)
        # A recording may begin with a dash; an option may not come from here.
        return [text if not text.startswith("-") else f"./{text}"]
    words = [os.fspath(w) for w in path]
    if not words:
        raise errors.UsageError("nothing to work on: the list of words is empty")
    return ["--", *words]


def options(**values: Any) -> List[str]:
    """Options as words. ``None`` and ``False`` are left out, lists are repeated, a ``_`` at the end is dropped.

    >>> options(machine=["a", "b"], all_rounds=True, jobs=None, class_="S")
    ['--machine', 'a', '--machine', 'b', '--all-rounds', '--class', 'S']
    """
    words: List[str] = []
    for name, value in values.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, (list, tuple)):
            for each in value:
                words += [option, os.fspath(each) if isinstance(each, os.PathLike) else str(each)]
        else:
            words += [option, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    return words


def explain(
    what: Subject,
    *,
    machine: Optional[PathLike] = None,
    page: Optional[str] = None,
    class_: Optional[str] = None,
    threads: Optional[int] = None,
    jobs: Optional[int] = None,
    all_rounds: bool = False,
    keep: Optional[PathLike] = None,
) -> Explanation:
    """Says what is wrong with the memory of a program, in which line, and what a fix brings.

    Args:
        what: a recording, ``"kernel:NAME"``, or a program and its arguments as a list of words, which is recorded.
        machine: the machine to simulate: a name of :func:`machines` or a file. Default: this machine where it has
            several nodes, else a current one with two sockets.
        page: the page size, such as ``"2MiB"``. Default: the smallest of the machine.
        class_: the problem class of a kernel.
        threads: OpenMP threads of a program that is recorded.
        jobs: host threads that simulate. The result does not depend on it. Default: one for each CPU.
        all_rounds: simulate all rounds of a long recording.
        keep: the folder in which to keep the recording that is made.

    Raises:
        HomenodeError: a subclass for the command's exit status; its message is what the command said.
    """
    words = options(machine=machine, page=page, class_=class_, threads=threads, jobs=jobs, all_rounds=all_rounds, keep=keep)
    found, _ = _command.answer(["explain", "--json", "--quiet", *words, *words_of(what)], "homenode/explain/1")
    answer = Explanation.of(found)
    _warn(answer.missing)
    return answer


def changed(before: Subject, after: Subject, *, machine: Optional[PathLike] = None, **more: Any) -> Change:
    """Says what a change of a program brought: ``before`` is a recording, ``after`` is what :func:`explain` takes.

    ``more`` are further options of :func:`explain`.
    """
    before = getattr(before, "path", before)
    words = options(machine=machine, against=before, **more)
    found, _ = _command.answer(["explain", "--json", "--quiet", *words, *words_of(after)], "homenode/explain-against/1")
    return Change.of(found)


def compare(
    what: Subject,
    *,
    machines: Union[PathLike, Sequence[PathLike]] = (),
    policies: Union[str, Sequence[str]] = (),
    page: Optional[str] = None,
    outstanding: Optional[int] = None,
    coverage: Optional[int] = None,
    yardsticks: Optional[str] = None,
    statistics: bool = False,
    class_: Optional[str] = None,
    threads: Optional[int] = None,
    jobs: Optional[int] = None,
    keep: Optional[PathLike] = None,
    on: Optional[str] = None,
) -> Comparison:
    """Simulates placement schemes on machines, one row for each pair.

    Args:
        what: as :func:`explain` takes it.
        machines: names of :func:`machines`, or files. Default: as ``homenode compare`` chooses.
        policies: schemes or policies with their options, such as ``"competitive:gain=30"``. Default: all schemes.
        page: the page size.
        outstanding: outstanding misses of a CPU.
        coverage: percent of the latency that prefetching hides in sequential streams.
        yardsticks: ``"bound"`` or ``"all"``.
        statistics: more tables, in :attr:`Comparison.json`.
        class_, threads, jobs, keep: as :func:`explain` takes them.
        on: ``"lab"`` runs it on the virtual machine.

    Raises:
        HomenodeError: as :func:`explain`.
    """
    words = options(machine=_several(machines), policy=_several(policies), page=page, outstanding=outstanding)
    words += options(coverage=coverage, statistics=statistics, class_=class_, threads=threads, jobs=jobs, keep=keep, on=on)
    if yardsticks is not None:
        words.append(f"--yardsticks={yardsticks}")
    found, ended = _command.answer(["compare", "--json", "--quiet", *words, *words_of(what)], "homenode/compare/1")
    answer = Comparison.of(found, ended.status == 3)
    _warn(answer.warnings)
    return answer


def _several(value: Any) -> List[Any]:
    return [value] if isinstance(value, (str, os.PathLike)) else list(value)


def _warn(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        warnings.warn(sentence, errors.PartialWarning, stacklevel=3)


def record(
    what: Subject,
    *,
    output: Optional[PathLike] = None,
    force: bool = False,
    on: Optional[str] = None,
    source: Optional[str] = None,
    pretend_nodes: Optional[int] = None,
    filter: Optional[Union[str, int]] = None,
    class_: Optional[str] = None,
    threads: Optional[int] = None,
    capture: bool = True,
    check: bool = True,
) -> Recorded:
    """Runs a program and records who touches what.

    Args:
        what: ``"kernel:NAME"``, or a program and its arguments as a list of words.
        output: the recording. Default: the program's name with the first free number, in the current folder.
        force: replace a recording that is there.
        on: ``"host"``, ``"live"``, ``"emulator"`` or ``"lab"``, as ``homenode record --on``.
        source: what tells a live recording who touches what.
        pretend_nodes: number of nodes that the CPUs are dealt into for a live recording.
        filter: what the recorder leaves out: ``"repeats"``, ``"none"`` or a number of lines.
        class_, threads: as :func:`explain` takes them.
        capture: keep what the program writes; else it goes where this process writes.
        check: raise :class:`ProgramFailed` where the program does not end with status 0. Its recording stays.

    Raises:
        HomenodeError: nothing was recorded, or the program failed and ``check`` is set.
    """
    words = words_of(what)
    path = Path(os.fspath(output)) if output is not None else _free_name(words)
    with tempfile.TemporaryDirectory(prefix="homenode-") as folder:
        summary = Path(folder) / "summary"
        args = ["record", "--output", str(path), "--summary", str(summary)]
        args += options(force=force, on=on, source=source, pretend_nodes=pretend_nodes, filter=filter)
        args += [*options(class_=class_, threads=threads), *words]
        if capture:
            ended = _command.run(args)
        else:
            command = [str(_command.find()), *args]
            done = subprocess.run(command, check=False)
            ended = _command.Ended(tuple(command), done.returncode, "", "")
        report = summary.read_text("utf-8", "replace") if summary.is_file() else ""
    if not report and ended.status:
        # homenode reports whatever became of the program: without a report it failed itself.
        raise ended.error()
    if ended.status and check:
        message = f"{' '.join(words[1:] or words)} ended with status {ended.status}\n{ended.stderr[-2000:]}".rstrip()
        raise errors.ProgramFailed(f"{message}\n  help: check=False returns the recording {path}", ended.status, ended.command)
    return Recorded(path, ended.status, ended.stdout, ended.stderr, report)


def _free_name(words: Sequence[str]) -> Path:
    """The program's name with the first free number.

    >>> _free_name(["--", "/no/such/app", "-x"]).name
    'app-1.hnrec'
    """
    stem = Path(words[1] if words[0] == "--" else words[0].replace("kernel:", "")).name
    return next(p for n in range(1, 1 << 30) for p in [Path(f"{stem}-{n}.hnrec")] if not p.exists())


def machines() -> List[str]:
    """Names of the machines that programs can be simulated on."""
    found, _ = _command.answer(["machine", "list", "--json"], "homenode/machine-list/1")
    return [row["machine"] for row in found["rows"]]
