"""An executor whose tasks are jobs of Slurm: ``homenode.sweep(…, executor=SlurmExecutor("jobs"))``.

Tasks that are submitted together become one job array, by submitit. A task that Slurm ends (``scancel``, a lost node, a
time limit) is an error of that task alone. The folder of the jobs must be on a file system that all nodes share.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from concurrent import futures
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from .. import errors
from .._command import PathLike

#: Seconds in which tasks are gathered for one array.
GATHER = 0.3
#: Most tasks of an array: Slurm's own default of MaxArraySize is 1001.
LARGEST = 1000

_Task = Tuple["futures.Future[Any]", Callable[[], Any]]


class _Call:
    """A function and its arguments, as the job gets them."""

    def __init__(self, function: Callable[..., Any], args: Tuple[Any, ...], named: Mapping[str, Any]) -> None:
        self._function, self._args, self._named = function, args, dict(named)

    def __call__(self) -> Any:
        return self._function(*self._args, **self._named)


class SlurmExecutor(futures.Executor):
    """Runs each task as a job of Slurm.

    Args:
        folder: where the jobs leave their results and logs.
        partition: the partition of the jobs. Default: Slurm's.
        minutes: time limit of a job.
        cpus: CPUs of a job.
        at_once: most jobs of an array that run at the same time.
        options: further options of sbatch, such as ``{"account": "x"}``.
        every: seconds between two looks for results.
        patience: seconds for which a job may be gone from the queue before its result is there. A shared file system
            may show files late.

    Raises:
        MissingPackage: submitit is not installed.
        HomenodeError: this machine has no Slurm.
    """

    def __init__(
        self,
        folder: PathLike,
        *,
        partition: Optional[str] = None,
        minutes: int = 60,
        cpus: int = 1,
        at_once: int = 256,
        options: Optional[Mapping[str, Any]] = None,
        every: float = 2.0,
        patience: float = 60.0,
    ) -> None:
        try:
            import submitit
        except ImportError:
            raise errors.optional("submitit", "slurm") from None
        if submitit.AutoExecutor.which() != "slurm":
            raise errors.UsageError("there is no Slurm here: srun is not on the PATH; run it on a login node")
        path = Path(os.fspath(folder)).absolute()
        path.mkdir(parents=True, exist_ok=True)
        self._slurm: Any = submitit.AutoExecutor(folder=path)
        self._slurm.update_parameters(
            name="homenode-sweep",
            timeout_min=minutes,
            cpus_per_task=cpus,
            slurm_array_parallelism=at_once,
            slurm_additional_parameters=dict(options or {}),
        )
        if partition is not None:
            self._slurm.update_parameters(slurm_partition=partition)
        self._every, self._patience = every, patience
        #: When a job was first seen to be gone from the queue, by its id.
        self._gone: Dict[str, float] = {}
        self._new: List[_Task] = []
        self._jobs: List[Tuple["futures.Future[Any]", Any]] = []
        self._changed = threading.Condition()
        self._ending = False
        self._thread = threading.Thread(target=self._serve, name="homenode-slurm", daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "futures.Future[Any]":
        """Hands a task to Slurm, together with those that follow at once."""
        future: "futures.Future[Any]" = futures.Future()
        with self._changed:
            if self._ending:
                raise RuntimeError("the executor was shut down")
            self._new.append((future, _Call(fn, args, kwargs)))
            self._changed.notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the executor; with ``cancel_futures`` its jobs, too."""
        with self._changed:
            self._ending = True
            if cancel_futures:
                for future, _ in self._new:
                    future.cancel()
                self._new = []
                for _, job in self._jobs:
                    job.cancel()
            self._changed.notify()
        if wait:
            self._thread.join()

    # --- the thread -------------------------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            with self._changed:
                if not self._new:
                    if self._ending and not self._jobs:
                        return
                    self._changed.wait(self._every if self._jobs else None)
            if self._new:
                # Those that are submitted in a loop come within this time.
                threading.Event().wait(GATHER)
                self._send()
            self._collect()

    def _send(self) -> None:
        with self._changed:
            batch, self._new = self._new[:LARGEST], self._new[LARGEST:]
        started = [(future, call) for future, call in batch if future.set_running_or_notify_cancel()]
        try:
            with self._slurm.batch():
                jobs = [self._slurm.submit(call) for _, call in started]
        except Exception as e:  # noqa: BLE001: sbatch refused; each task says so
            for future, _ in started:
                future.set_exception(e)
            return
        with self._changed:
            self._jobs += [(future, job) for (future, _), job in zip(started, jobs)]

    def _collect(self) -> None:
        with self._changed:
            jobs = list(self._jobs)
        queue = _queue() if jobs else None
        left = []
        for future, job in jobs:
            try:
                # submitit asks Slurm's accounting, which not every site has.
                if not job.done():
                    if self._is_lost(job.job_id, queue):
                        raise RuntimeError(f"Slurm ended job {job.job_id}, and it left no result: {job.paths.stderr}")
                    left.append((future, job))
                    continue
                result = job.result()
            except Exception as e:  # noqa: BLE001: whatever ended the job is the task's error
                future.set_exception(e)
            else:
                future.set_result(result)
        with self._changed:
            self._jobs = left

    def _is_lost(self, job: str, queue: Optional[Set[str]]) -> bool:
        """Whether a job without result has not been in the queue for longer than the patience."""
        if queue is None:
            return False
        if job in queue:
            self._gone.pop(job, None)
            return False
        return time.monotonic() - self._gone.setdefault(job, time.monotonic()) > self._patience


def _queue() -> Optional[Set[str]]:
    """The user's jobs that wait or run; nothing if Slurm does not answer."""
    words = ["squeue", "--noheader", "--array", "--format=%i", f"--user={os.getuid()}"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return set(said.stdout.split()) if said.returncode == 0 else None
