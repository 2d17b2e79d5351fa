"""Hands the work of a sweep to an executor, and keeps what comes back.

1. The description is checked whole (:mod:`.spec`).
2. Programs that have no recording yet are recorded, one task each.
3. What is not in the store is simulated: one task for each recording and machine, with all its missing policies.
4. All rows are written as one data set.

A failed cell is a row with its error. Failed cells are not kept: the next run of the sweep tries them again.
"""

from __future__ import annotations

import concurrent.futures as futures
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, TypeVar, Union

from .. import _command, errors
from .._command import PathLike
from . import cells, spec as specs
from .spec import Program, Spec
from .store import COLUMNS, SCHEMA, Store, digest_of_file, key_of

T = TypeVar("T")
#: Tasks that an executor holds at a time. A scheduler need not know of a million.
MOST_PENDING = 1000


@dataclass(frozen=True)
class Progress:
    """How far a sweep is."""

    #: Cells that the sweep has.
    total: int
    #: Cells that are done, those included that were there.
    done: int
    #: Cells of them that failed.
    failed: int
    #: Seconds that the rest will take if it is like what was done; ``None`` while nobody knows.
    seconds_left: Optional[float]
    #: What is being done.
    doing: str

    def __str__(self) -> str:
        """
        >>> str(Progress(12, 3, 1, 90.0, "simulating"))
        'simulating: 3 of 12 cells, 1 failed, about 2 min left'
        """
        failed = f", {self.failed} failed" if self.failed else ""
        left = "" if self.seconds_left is None else f", about {_duration(self.seconds_left)} left"
        return f"{self.doing}: {self.done} of {self.total} cells{failed}{left}"


def _duration(seconds: float) -> str:
    for size, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"


@dataclass(frozen=True)
class Outcome:
    """A sweep that ended."""

    #: The data set: a folder of Parquet files, or a file of JSON lines.
    path: Path
    #: All rows: programs in the order of the description, machines within them, policies within
    #: those.
    rows: Tuple[Mapping[str, Any], ...]
    #: Cells that were computed now.
    computed: int
    #: Cells that were there.
    reused: int

    @property
    def failed(self) -> Tuple[Mapping[str, Any], ...]:
        """The rows with an error."""
        return tuple(r for r in self.rows if r["error"] is not None)

    def arrow(self) -> Any:
        """The rows as a ``pyarrow.Table``."""
        try:
            import pyarrow as pa
        except ImportError:
            raise errors.optional("pyarrow", "arrow") from None
        return pa.Table.from_pylist([dict(r) for r in self.rows])

    def pandas(self) -> Any:
        """The rows as a pandas ``DataFrame``."""
        try:
            import pandas
        except ImportError:
            raise errors.optional("pandas", "pandas") from None
        return pandas.DataFrame([dict(r) for r in self.rows], columns=[name for name, _, _ in COLUMNS])

    def __len__(self) -> int:
        return len(self.rows)


def sweep(
    source: Union[PathLike, Mapping[str, Any], Spec],
    output: PathLike,
    *,
    executor: Optional[futures.Executor] = None,
    jobs: Optional[int] = None,
    progress: Optional[Callable[[Progress], None]] = None,
    form: Optional[str] = None,
) -> Outcome:
    """Simulates programs × machines × policies and writes one data set of all results.

    A sweep that was broken off goes on where it was: call it again with the same ``output``. The same description gives
    the same bytes, whatever the executor and however often the sweep was broken off, unless a program is recorded anew
    that runs differently each time.

    Args:
        source: the description: a file, or what stands in it (:mod:`homenode.sweeps.spec`).
        output: the folder of the sweep, made if need be.
        executor: whoever runs the work: any ``concurrent.futures.Executor``, also that of a Dask cluster
            (``Client.get_executor()``). Default: processes on this machine, one for each CPU.
        jobs: processes of the default executor.
        progress: called with a :class:`Progress` whenever something is done.
        form: ``"parquet"`` or ``"jsonl"``. Default: Parquet where pyarrow is installed.

    Raises:
        HomenodeError: the description is wrong. Nothing was run then.
    """
    spec = source if isinstance(source, Spec) else specs.load(source)
    if form not in (None, "parquet", "jsonl"):
        raise errors.UsageError(f"form is parquet or jsonl, not {form}")
    specs.check(spec)
    run = _Run(spec, Store(Path(os.fspath(output))), progress)
    if executor is not None:
        run.all(executor)
    else:
        with futures.ThreadPoolExecutor(jobs or os.cpu_count() or 1) as local:
            # A task is a process of its own, the command; the threads only wait for them.
            try:
                run.all(local)
            except BaseException:
                _cancel(local)
                raise
    rows = tuple(run.rows())
    path = run.store.write_results([dict(r) for r in rows], form)
    return Outcome(path, rows, run.computed, spec.cells - run.computed)


def _cancel(executor: futures.Executor) -> None:
    if sys.version_info >= (3, 9):
        executor.shutdown(wait=False, cancel_futures=True)


class _Run:
    def __init__(self, spec: Spec, store: Store, progress: Optional[Callable[[Progress], None]]) -> None:
        self.spec, self.store, self._progress = spec, store, progress
        self.homenode = _command.find()
        self._build = digest_of_file(self.homenode)
        self._machines = {m: self._machine(m) for m in spec.machines}
        #: Results by program, machine and policy.
        self._results: Dict[Tuple[str, str, str], Dict[str, Any]] = {}
        self.computed = 0
        self._before = 0
        self._begin = time.monotonic()

    @staticmethod
    def _machine(name: str) -> str:
        found, _ = _command.answer(["machine", "show", "--json", name], "homenode/machine/1")
        return key_of(found)

    # --- progress ---------------------------------------------------------------------------------

    def _tell(self, doing: str) -> None:
        if self._progress is None:
            return
        done = len(self._results)
        failed = sum(1 for r in self._results.values() if "error" in r)
        here, left = done - self._before, self.spec.cells - done
        seconds = (time.monotonic() - self._begin) / here * left if here > 0 else None
        self._progress(Progress(self.spec.cells, done, failed, seconds, doing))

    # --- work -------------------------------------------------------------------------------------

    def all(self, executor: futures.Executor) -> None:
        """Records, then simulates."""
        recordings = self._recordings(executor)
        tasks: List[Tuple[cells.Simulation, Tuple[str, str, Dict[str, str]]]] = []
        for program in self.spec.programs:
            found = recordings[program.name]
            if isinstance(found, str):
                self._fail(program, found)
                continue
            try:
                digest = self.store.digest(found)
            except errors.HomenodeError as e:
                self._fail(program, e.message)
                continue
            for machine in self.spec.machines:
                missing = self._look_up(program, machine, digest)
                if missing:
                    how = tuple(sorted(self.spec.how.items()))
                    task = cells.Simulation(str(self.homenode), str(found.absolute()), machine, tuple(missing), how)
                    tasks.append((task, (program.name, machine, missing)))
        self._before, self._begin = len(self._results), time.monotonic()
        self._tell("simulating")
        for (name, machine, keys), result in _each(executor, cells.simulate, tasks):
            found_now = [{"error": result}] * len(keys) if isinstance(result, str) else result
            for (policy, key), values in zip(keys.items(), found_now):
                if "error" not in values:
                    self.store.put(key, values)
                self._results[name, machine, policy] = values
                self.computed += 1
            self._tell("simulating")

    def _fail(self, program: Program, why: str) -> None:
        for machine in self.spec.machines:
            for policy in self.spec.policies:
                self._results[program.name, machine, policy] = {"error": why}
                self.computed += 1

    def _look_up(self, program: Program, machine: str, digest: str) -> Dict[str, str]:
        """Takes what is in the store; the keys of what is not, by policy."""
        missing = {}
        for policy in self.spec.policies:
            parts = {
                "schema": SCHEMA,
                "homenode": self._build,
                "recording": digest,
                "machine": self._machines[machine],
                "policy": policy,
                **self.spec.how,
            }
            key = key_of(parts)
            known = self.store.get(key)
            if known is None:
                missing[policy] = key
            else:
                self._results[program.name, machine, policy] = known
        return missing

    def _recordings(self, executor: futures.Executor) -> Dict[str, Union[Path, str]]:
        """The recording of each program, or why there is none."""
        found: Dict[str, Union[Path, str]] = {}
        tasks = []
        for program in self.spec.programs:
            if program.recording is not None:
                found[program.name] = Path(program.recording)
                continue
            target = self.store.recording(self._program_key(program))
            found[program.name] = target
            if not target.is_dir():
                tasks.append((cells.Recording(str(self.homenode), program, str(target.absolute())), program.name))
        for at, (name, error) in enumerate(_each(executor, cells.record, tasks)):
            self._tell(f"recorded {at + 1} of {len(tasks)} programs")
            if error is not None:
                found[name] = error
        return found

    def _program_key(self, program: Program) -> str:
        parts: Dict[str, Any] = {"schema": SCHEMA, "homenode": self._build, "threads": program.threads}
        if program.kernel is not None:
            return key_of({**parts, "kernel": program.kernel, "class": program.class_, "args": program.args})
        binary = Path(program.folder or ".") / program.command[0]
        content = digest_of_file(binary) if binary.is_file() else program.command[0]
        return key_of({**parts, "binary": content, "args": program.command[1:], "folder": program.folder})

    # --- results ----------------------------------------------------------------------------------

    def rows(self) -> Iterator[Dict[str, Any]]:
        """All rows in the order of the description."""
        for program in self.spec.programs:
            for machine in self.spec.machines:
                for policy in self.spec.policies:
                    values = self._results[program.name, machine, policy]
                    row = {name: values.get(name) for name, _, _ in COLUMNS}
                    row["warnings"] = values.get("warnings", [])
                    yield {**row, "program": program.name, "machine": machine, "policy": policy}


def _each(
    executor: futures.Executor, work: Callable[[Any], Any], tasks: List[Tuple[Any, T]]
) -> Iterator[Tuple[T, Any]]:
    """Results as they come, each with what its task belongs to. A task that raises yields its words."""
    waiting = iter(tasks)
    pending: Dict["futures.Future[Any]", T] = {}
    while True:
        for task, about in waiting:
            pending[executor.submit(work, task)] = about
            if len(pending) >= MOST_PENDING:
                break
        if not pending:
            return
        done, _ = futures.wait(pending, return_when=futures.FIRST_COMPLETED)
        for future in done:
            about = pending.pop(future)
            try:
                result = future.result()
            except Exception as e:  # noqa: BLE001: a worker may die of anything, and its cells are rows all the same
                result = f"the worker failed: {type(e).__name__}: {e}"
            yield about, result
