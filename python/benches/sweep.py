"""How a sweep scales on a Dask cluster, and whether it survives dead workers.

    HOMENODE=target/release PYTHONPATH=python python python/benches/sweep.py --workers 4 FOLDER

1. One worker computes all cells, then N workers do. *Efficiency* is the rate of N workers over N times that of one.
2. N workers compute them once more, and one of them is killed every `--kill` seconds.
3. The local pool computes them. All results must have the same bytes.

Other work on the machine lowers the rate of N workers more than that of one. So two causes of a loss are measured by
themselves: *busy* is the share of the workers' time in which they have a task, and *CPU a cell* is the CPU time of the
command for a cell. *Undisturbed* is the efficiency that follows from both. Status 1: results differ or cells failed.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List

import homenode

POLICIES = ["first-touch", "round-robin", "next-touch", "block", "competitive"]
MACHINES = ["2s-xeon", "epyc-nps4", "sf15k", "origin2000"]


@dataclass
class Run:
    """A sweep on a cluster of its own."""

    result: Any
    elapsed: float
    #: Share of the workers' time in which they had a task.
    busy: float
    #: CPU seconds of the commands that workers ran; those of killed workers are lost.
    cpu: float
    #: Workers that were killed.
    died: int

    def rate(self) -> float:
        return len(self.result) / self.elapsed


def recordings(folder: Path, count: int, size: int) -> List[str]:
    """Recordings that take about as long as each other to simulate."""
    made = []
    for number in range(count):
        path = folder / f"heat-{size}-{number}.hnrec"
        if not path.exists():
            words = [homenode.find_command(), "record", "kernel:heat", "--threads", "4", "--quiet", "-o", path, "--"]
            subprocess.run([*words, "--size", str(size), "--iterations", str(20 + number)], check=True, stdout=subprocess.DEVNULL)
        made.append(str(path))
    return made


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _pid(dask_worker: Any) -> int:
    return os.getpid()


def on_cluster(description: Dict[str, Any], output: Path, workers: int, kill: float = 0.0) -> Run:
    from distributed import Client, LocalCluster, get_task_stream

    died = 0
    stop = threading.Event()
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        with Client(cluster) as client:

            def killer() -> None:
                nonlocal died
                chosen = random.Random(1)
                while not stop.wait(kill):
                    pids = list(client.run(_pid, on_error="ignore").values())
                    if pids and not stop.is_set():
                        os.kill(chosen.choice(pids), signal.SIGKILL)
                        died += 1

            thread = threading.Thread(target=killer, daemon=True)
            begin = time.monotonic()
            if kill:
                thread.start()
            with get_task_stream(client) as stream:
                result = homenode.sweep(description, output, executor=client.get_executor())
                elapsed = time.monotonic() - begin
                stop.set()
            if kill:
                thread.join()
            cpu = sum(client.run(_children, on_error="ignore").values())
    spans = [s for task in stream.data for s in task["startstops"] if s["action"] == "compute"]
    busy = sum(s["stop"] - s["start"] for s in spans) / (workers * elapsed)
    return Run(result, elapsed, busy, cpu, died)


def content(folder: Path) -> Dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def main() -> int:
    parser = argparse.ArgumentParser(description="How a sweep scales on a Dask cluster.")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--size", type=int, default=512, help="points of an edge of the recorded grid")
    parser.add_argument("--kill", type=float, default=20.0, metavar="SECONDS")
    parser.add_argument("folder", type=Path, help="for recordings and results; it may be there already")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    programs = recordings(asked.folder, asked.cells // (len(MACHINES) * len(POLICIES)), asked.size)
    description = {"programs": programs, "machines": MACHINES, "policies": POLICIES}
    out = asked.folder / f"run-{os.getpid()}"

    def told(name: str, run: Run) -> None:
        load = os.getloadavg()[0]
        print(
            f"{name}: {len(run.result)} cells in {run.elapsed:.1f} s ({run.rate():.2f} a second), busy {run.busy:.1%}, "
            f"{run.cpu / len(run.result):.3f} CPU seconds a cell, {run.died} workers killed, "
            f"{len(run.result.failed)} failed; load {load:.1f}",
            flush=True,
        )

    one = on_cluster(description, out / "one", 1)
    told("1 worker", one)
    several = on_cluster(description, out / "several", asked.workers)
    told(f"{asked.workers} workers", several)
    efficiency = several.rate() / (asked.workers * one.rate())
    undisturbed = several.busy / one.busy * one.cpu / several.cpu
    print(f"efficiency {efficiency:.1%}, undisturbed {undisturbed:.1%}", flush=True)
    killed = on_cluster(description, out / "killed", asked.workers, asked.kill)
    told("with killed workers", killed)
    local = homenode.sweep(description, out / "local", jobs=asked.workers)
    expected = content(Path(local.path))
    wrong = 0
    for name, result in (("1 worker", one.result), (f"{asked.workers} workers", several.result), ("killed", killed.result)):
        same = content(Path(result.path)) == expected
        wrong += not same or len(result.failed) > 0
        print(f"{name}: {'the same bytes as' if same else 'OTHER BYTES THAN'} the local pool's")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
