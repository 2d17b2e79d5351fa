"""Sweeps: what is checked before they run, what they write, and that nothing is done twice."""

import concurrent.futures as futures
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import homenode
from conftest import MACHINE, ROWS
from homenode.sweeps import cells, spec as specs
from homenode.sweeps.store import Store

MACHINES = [MACHINE, "2s-xeon", "epyc-nps4"]
POLICIES = ["first-touch", "round-robin", "competitive:gain=30"]


@pytest.fixture
def description(recording):
    return {"programs": [{"recording": str(recording), "name": "stencil"}], "machines": MACHINES, "policies": POLICIES}


def content(folder):
    """All files of a data set, by path."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def whole(recording, tmp_path_factory):
    """The sweep, never broken off."""
    description = {"programs": [{"recording": str(recording), "name": "stencil"}], "machines": MACHINES, "policies": POLICIES}
    return homenode.sweep(description, tmp_path_factory.mktemp("whole"))


def test_the_result_is_that_of_compare(whole, recording):
    assert len(whole) == 9 and not whole.failed and (whole.computed, whole.reused) == (9, 0)
    table = homenode.compare(recording, machines="2s-xeon", policies=POLICIES)
    for row in whole.rows:
        if row["machine"] == "2s-xeon":
            same = table.row(row["policy"])
            assert {k: row[k] for k in cells.VALUES} == {k: same[k] for k in cells.VALUES}
            assert row["threads"] == 4 and row["accesses"] == table.facts["accesses"]


def test_it_is_one_partitioned_data_set(whole):
    import duckdb
    import polars as pl

    frame = pl.scan_parquet(f"{whole.path}/**/*.parquet", hive_partitioning=True).collect()
    assert frame.height == 9 and set(frame["machine"].unique()) == set(MACHINES)
    rows = duckdb.sql(f"SELECT count(*), count(DISTINCT machine) FROM '{whole.path}/**/*.parquet'").fetchall()
    assert rows == [(9, 3)]
    assert whole.pandas().shape[0] == whole.arrow().num_rows == 9


@pytest.mark.parametrize("make", [futures.ThreadPoolExecutor, futures.ProcessPoolExecutor])
def test_any_executor_gives_the_same_bytes(description, whole, tmp_path, make):
    with make(2) as executor:
        other = homenode.sweep(description, tmp_path, executor=executor)
    assert content(other.path) == content(whole.path)


def test_a_second_run_computes_nothing(description, whole):
    seen = []
    again = homenode.sweep(description, whole.path.parent, progress=seen.append)
    assert (again.computed, again.reused) == (0, 9) and again.rows == whole.rows
    assert seen[-1].done == seen[-1].total == 9
    # One more policy: only its cells are computed.
    more = homenode.sweep({**description, "policies": [*POLICIES, "block"]}, whole.path.parent)
    assert (more.computed, more.reused) == (3, 9)
    homenode.sweep(description, whole.path.parent)


def test_a_killed_sweep_goes_on_where_it_was(description, whole, tmp_path):
    file, output = tmp_path / "s.json", tmp_path / "out"
    file.write_text(json.dumps(description))
    # A command that waits before its second simulation, so that the sweep is surely in the middle.
    slow, real = tmp_path / "slow", homenode.find_command()
    slow.mkdir()
    (slow / "homenode").write_text(
        f'#!/bin/sh\ncase "$*" in *--jobs*) mkdir "{tmp_path}/once" 2>/dev/null || sleep 60 ;; esac\nexec {real} "$@"\n'
    )
    (slow / "homenode").chmod(0o755)
    command = [sys.executable, "-m", "homenode", "sweep", str(file), "-o", str(output), "-j", "1"]
    process = subprocess.Popen(command, env={**os.environ, "HOMENODE": str(slow)}, start_new_session=True, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list(output.glob("cells/*/*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = {p: p.stat().st_mtime_ns for p in output.glob("cells/*/*.json")}
    assert len(kept) == 3 and not (output / "results").exists()
    # The same command, which no longer waits.
    done = subprocess.run(
        command, env={**os.environ, "HOMENODE": str(slow), "PATH": f"{_no_sleep(tmp_path)}:{os.environ['PATH']}"},
        capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "9 rows, 6 computed, 3 there before, 0 failed" in done.stdout
    assert {p: p.stat().st_mtime_ns for p in kept} == kept, "what was there is not done again"
    assert content(output / "results") == content(whole.path)


def _no_sleep(folder):
    """A folder with a sleep that does not."""
    bin = folder / "bin"
    bin.mkdir()
    (bin / "sleep").write_text("#!/bin/sh\n")
    (bin / "sleep").chmod(0o755)
    return bin


def test_a_failed_cell_is_a_row_and_takes_no_other_with_it(recording, tmp_path):
    broken = tmp_path / "broken.hnrec"
    broken.mkdir()
    (broken / "meta.json").write_text("{}")
    programs = [{"recording": str(broken), "name": "broken"}, {"recording": str(recording), "name": "good"}]
    programs.append({"command": ["/bin/false"], "name": "no recorder"})
    description = {"programs": programs, "machines": ["2s-xeon"], "policies": POLICIES[:2]}
    outcome = homenode.sweep(description, tmp_path / "out", form="jsonl")
    rows = [json.loads(line) for line in outcome.path.read_text().splitlines()]
    assert rows == list(map(dict, outcome.rows)) and len(rows) == 6
    assert [bool(r["error"]) for r in rows] == [True, True, False, False, True, True]
    assert "cannot compare" in rows[0]["error"] and rows[0]["time"] is None and rows[2]["time"] > 0
    assert "homenode-cc" in rows[4]["error"]
    # What failed is tried again, what did not is there.
    assert homenode.sweep(description, tmp_path / "out", form="jsonl").reused == 2


class Elsewhere(futures.ThreadPoolExecutor):
    """Workers that do not see the folder of the sweep."""

    def submit(self, work, task):
        unseen = {"recording": "/nowhere/x.hnrec"} if isinstance(task, cells.Simulation) else {"target": "/nowhere/x.hnrec"}
        return super().submit(work, dataclasses.replace(task, **unseen))


def test_workers_without_the_shared_file_system_are_told_so(recording, program, tmp_path):
    programs = [{"recording": str(recording), "name": "there"}, {"command": [str(program), ROWS], "name": "to be recorded"}]
    description = {"programs": programs, "machines": ["2s-xeon"], "policies": POLICIES[:2]}
    with Elsewhere(2) as executor:
        outcome = homenode.sweep(description, tmp_path, executor=executor)
    assert len(outcome.failed) == 4
    assert all("does not see /nowhere" in r["error"] and "all workers share" in r["error"] for r in outcome.rows)
    # Nothing of that is kept: workers that see the folder compute all cells.
    assert not homenode.sweep(description, tmp_path).failed


def test_programs_are_recorded_once(program, tmp_path):
    description = {
        "programs": [{"command": [str(program), ROWS], "threads": 2, "name": "two"}, {"command": [str(program), ROWS], "threads": 4}],
        "machines": ["2s-xeon"],
        "policies": ["first-touch"],
    }
    first = homenode.sweep(description, tmp_path / "a")
    recordings = sorted((tmp_path / "a" / "recordings").iterdir())
    assert len(recordings) == 2 and [r["threads"] for r in first.rows] == [2, 4]
    times = [p.stat().st_mtime_ns for p in recordings]
    again = homenode.sweep(description, tmp_path / "a")
    assert again.computed == 0 and [p.stat().st_mtime_ns for p in recordings] == times


@pytest.mark.parametrize(
    "change, said",
    [
        ({"machine": []}, "no key machine"),
        ({"machines": []}, "at least one"),
        ({"machines": ["2s-xeon", "no-such"]}, "no-such"),
        ({"policies": ["first-touch", "next-tuch"]}, "next-touch"),
        ({"policies": ["competitive:gian=3"]}, "no option `gian`"),
        ({"policies": ["first-touch", "first-touch"]}, "twice"),
        # The last of 180.
        ({"policies": [f"cyclic:pages={n}" for n in range(1, 180)] + ["cyclic:pags=180"]}, "no option `pags`"),
        ({"page": "3K"}, "no pages of 3 KiB"),
        ({"page": 4096}, "page is a text"),
        ({"coverage": 101}, "101"),
        ({"programs": []}, "at least one program"),
        ({"programs": ["no-such.hnrec"]}, "no recording"),
        ({"programs": ["kernel:no-such"]}, "no kernel no-such"),
        ({"programs": [{"command": ["./no-such"]}]}, "no program"),
        ({"programs": [{"kernel": "heat", "command": ["x"]}]}, "one of recording, kernel and command"),
        ({"programs": [{"recording": "x", "threads": 3}]}, "threads is not for a recording"),
        ({"programs": [{"kernel": "heat", "threads": 0}]}, "from 1 on"),
    ],
)
def test_the_whole_file_is_checked_before_anything_runs(description, tmp_path, change, said):
    file = tmp_path / "s.json"
    file.write_text(json.dumps({**description, **change}))
    command = [sys.executable, "-m", "homenode", "sweep", str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (2, 127) and said in done.stderr, done.stderr
    assert os.listdir(tmp_path) == ["s.json"], "nothing was written"


def test_a_description_in_toml(tmp_path, recording):
    pytest.importorskip("tomllib")
    file = tmp_path / "s.toml"
    file.write_text(
        'programs = ["kernel:heat", { kernel = "nas-cg", class = "S", threads = 4 }, '
        '{ command = ["/bin/true", "8"], name = "app" }]\n'
        'machines = ["2s-xeon", "m.toml"]\npolicies = ["next-touch"]\nyardsticks = "bound"\n'
    )
    (tmp_path / "m.toml").write_text(Path(MACHINE).read_text())
    spec = specs.load(file)
    assert [p.name for p in spec.programs] == ["heat", "nas-cg S 4 threads", "app"] and spec.cells == 6
    assert spec.machines == ("2s-xeon", str(tmp_path / "m.toml"))
    done = subprocess.run([sys.executable, "-m", "homenode", "sweep", str(file), "--check"], capture_output=True, text=True)
    assert done.returncode == 0 and "6 cells" in done.stdout, done.stderr


def test_a_damaged_result_is_computed_again(description, tmp_path):
    small = {**description, "machines": ["2s-xeon"], "policies": ["first-touch"]}
    first = homenode.sweep(small, tmp_path)
    cell = next(tmp_path.glob("cells/*/*.json"))
    cell.write_bytes(cell.read_bytes()[:20])
    again = homenode.sweep(small, tmp_path)
    assert again.computed == 1 and again.rows == first.rows


def test_what_a_dead_sweep_had_begun_to_record_goes(tmp_path):
    import socket

    store = Store(tmp_path)
    for number, is_there in ((2**22 + 1, False), (os.getpid(), True)):
        part = store.recording("k").with_name(f"k.hnrec.part-{socket.gethostname()}-{number}")
        part.mkdir()
        Store(tmp_path)
        assert part.exists() == is_there


def test_on_a_dask_cluster(description, whole, tmp_path):
    distributed = pytest.importorskip("distributed")
    # The workers are processes of their own, as on a cluster.
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    ) as cluster, distributed.Client(cluster) as client:
        outcome = homenode.sweep(description, tmp_path, executor=client.get_executor())
    assert outcome.computed == 9 and content(outcome.path) == content(whole.path)
