"""``python -m homenode sweep FILE``."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent import futures
from typing import Any, List, Optional

from .. import errors
from . import spec as specs
from .run import Progress, sweep
from .slurm import SlurmExecutor

ABOUT = """\
Simulates programs × machines × policies and writes one data set of all results.

FILE is TOML or JSON: lists of programs, machines and policies; docs/python.md has an example. A sweep that was broken
off goes on where it was: run the same command again."""

#: Seconds between two lines of progress where stderr is no terminal.
EVERY = 10.0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(
        prog="python -m homenode sweep",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Status 0: every cell has a result; 3: some failed, or it was stopped; 2: FILE is wrong, nothing was run.",
    )
    found.add_argument("file", metavar="FILE", help="the description")
    found.add_argument("-o", "--output", metavar="DIR", help="the folder of the sweep [default: FILE's name, .sweep]")
    found.add_argument("-j", "--jobs", metavar="N", type=int, help="processes on this machine [default: one a CPU]")
    found.add_argument("--dask", metavar="ADDRESS", help="run on the Dask cluster with this scheduler")
    found.add_argument("--slurm", action="store_true", help="run as jobs of Slurm; their files go to DIR/jobs")
    found.add_argument("--partition", metavar="P", help="with --slurm: the partition [default: Slurm's]")
    found.add_argument("--minutes", metavar="N", type=int, default=60, help="with --slurm: time limit of a job [60]")
    found.add_argument("--format", choices=("parquet", "jsonl"), help="[default: parquet where pyarrow is installed]")
    found.add_argument("--check", action="store_true", help="check FILE and run nothing")
    found.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    return found


class _Teller:
    """Writes progress to stderr: one line that is overwritten on a terminal, else a line now and then."""

    def __init__(self) -> None:
        self._last = 0.0
        self._terminal = sys.stderr.isatty()

    def __call__(self, progress: Progress) -> None:
        now, last = time.monotonic(), progress.done == progress.total
        if now - self._last < (0.1 if self._terminal else EVERY) and not last:
            return
        self._last = now
        text = f"homenode: {progress}"
        print(f"\r\x1b[K{text}" if self._terminal else text, end="\n" if last or not self._terminal else "", file=sys.stderr, flush=True)


def main(words: Optional[List[str]] = None) -> int:
    """Runs the command; its exit status."""
    args = parser().parse_args(words)
    if args.jobs is not None and args.jobs < 1:
        parser().error("argument -j/--jobs: at least 1")
    if args.slurm and args.dask:
        parser().error("argument --slurm: not with --dask")
    try:
        return _run(args)
    except (errors.HomenodeError, errors.MissingPackage) as e:
        print(f"homenode: {e}", file=sys.stderr)
        return e.status if isinstance(e, errors.HomenodeError) and e.status else 2
    except KeyboardInterrupt:
        print("\nhomenode: stopped; the same command goes on where this one was", file=sys.stderr)
        return 3


def _run(args: argparse.Namespace) -> int:
    spec = specs.load(args.file)
    if args.check:
        specs.check(spec)
        print(f"{args.file}: {spec.cells} cells")
        return 0
    output = args.output or f"{args.file.rsplit('.', 1)[0]}.sweep"
    client: Any = None
    if args.dask:
        try:
            import distributed
        except ImportError:
            raise errors.optional("distributed", "dask") from None
        connect: Any = distributed.Client
        client = connect(args.dask)
    executor: Optional[futures.Executor] = None
    try:
        if client is not None:
            executor = client.get_executor()
        elif args.slurm:
            executor = SlurmExecutor(f"{output}/jobs", partition=args.partition, minutes=args.minutes)
        progress = None if args.quiet else _Teller()
        outcome = sweep(spec, output, executor=executor, jobs=args.jobs, progress=progress, form=args.format)
    finally:
        if client is not None:
            client.close()
        elif executor is not None:
            # After an error or Ctrl-C the jobs that are left are of no use.
            executor.shutdown(cancel_futures=True)
    failed = len(outcome.failed)
    print(f"{outcome.path}: {len(outcome)} rows, {outcome.computed} computed, {outcome.reused} there before, {failed} failed")
    for row in outcome.failed[:5]:
        print(f"homenode: {row['program']} on {row['machine']} under {row['policy']}: {row['error']}", file=sys.stderr)
    return 3 if failed else 0
