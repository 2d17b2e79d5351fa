"""What workers do. Arguments and results are plain data, so that any executor carries them.

A worker needs this package, the command ``homenode`` at the path that the task names, and the folder of the sweep: of a
cluster, a shared file system.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from .. import errors
from ..commands import options
from . import spec as specs
from .spec import Program

#: Keys of a row of ``homenode compare`` that a cell keeps.
VALUES = ("time", "remote", "moved", "overhead", "above_bound", "over_floor", "over_bound", "over_oracle", "over_best")


@dataclass(frozen=True)
class Recording:
    """A program to record."""

    homenode: str
    program: Program
    target: str


@dataclass(frozen=True)
class Simulation:
    """A recording to simulate on a machine under several policies: caches are simulated once for all of them."""

    homenode: str
    recording: str
    machine: str
    policies: Tuple[str, ...]
    how: Tuple[Tuple[str, Any], ...]


def _run(command: List[str], folder: Optional[str] = None) -> Tuple[int, str, str]:
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False
    )
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def _elsewhere(*paths: str) -> Optional[str]:
    """Why this worker cannot work on a task: it does not see one of these paths."""
    for path in paths:
        if not os.path.exists(path):
            return (
                f"the worker on {socket.gethostname()} does not see {path}: the folder of the sweep, its recordings and "
                "the command must be on a file system that all workers share"
            )
    return None


def record(task: Recording) -> Optional[str]:
    """Records a program into its target; what went wrong, or ``None``."""
    target, program = Path(task.target), task.program
    if target.is_dir():
        return None
    unseen = _elsewhere(task.homenode, str(target.parent))
    if unseen is not None:
        return unseen
    part = target.with_name(f"{target.name}.part-{socket.gethostname()}-{os.getpid()}")
    shutil.rmtree(part, ignore_errors=True)
    command = [task.homenode, "record", "--quiet", "--on", "host", "--output", str(part.absolute())]
    command += options(class_=program.class_, threads=program.threads)
    try:
        status, _, said = _run([*command, *program.subject], program.folder)
        if status:
            return f"recording ended with status {status}: {errors.message_of(said)}"
        try:
            os.rename(part, target)
        except OSError:
            if not target.is_dir():
                raise
        return None
    except OSError as e:
        return f"cannot record: {e}"
    finally:
        shutil.rmtree(part, ignore_errors=True)


def simulate(task: Simulation) -> List[Dict[str, Any]]:
    """The results of a simulation, one for each policy: values, or ``error``."""
    unseen = _elsewhere(task.homenode, task.recording)
    if unseen is not None:
        return [{"error": unseen} for _ in task.policies]
    try:
        status, out, said = _run(_command_line(task, task.policies))
    except OSError as e:
        return [{"error": f"cannot run {task.homenode}: {e}"} for _ in task.policies]
    if status not in (0, 3) or not out:
        if len(task.policies) == 1:
            return [{"error": errors.message_of(said)}]
        # One that fails takes no other with it.
        alone = [Simulation(task.homenode, task.recording, task.machine, (p,), task.how) for p in task.policies]
        return [result for one in alone for result in simulate(one)]
    try:
        return _results(json.loads(out), task.policies)
    except (ValueError, KeyError, TypeError) as e:
        return [{"error": f"the command printed what this package cannot read: {e!r}"} for _ in task.policies]


def _command_line(task: Simulation, policies: Tuple[str, ...]) -> List[str]:
    command = [task.homenode, "compare", "--json", "--quiet", "--jobs", "1", "--machine", task.machine]
    command += [word for policy in policies for word in ("--policy", policy)]
    # A recording's path may begin with a dash only where it is absolute, and then it does not.
    return [*command, *specs.words(dict(task.how)), os.path.abspath(task.recording)]


def _results(found: Dict[str, Any], policies: Tuple[str, ...]) -> List[Dict[str, Any]]:
    schema = found.get("schema")
    if schema != "homenode/compare/1":
        raise ValueError(f"schema {schema}")
    why = {(m["row"], m["column"]): m["why"] for m in found.get("missing", [])}
    results: List[Dict[str, Any]] = []
    for at, policy in enumerate(policies):
        # A row for each policy in the order of the command line; yardsticks stand below.
        row = found["rows"][at]
        if row["scheme"].lower() != policy.lower():
            raise ValueError(f"row {at} is of {row['scheme']}, not of {policy}")
        if row["time"] is None:
            results.append({"error": why.get((at, "time"), "there is no result")})
            continue
        values = {name: row.get(name) for name in VALUES}
        facts = {name: found["facts"].get(name) for name in ("threads", "accesses")}
        results.append({**values, **facts, "warnings": list(found.get("warnings", []))})
    return results
