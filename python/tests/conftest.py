"""What the tests share: the command, and recordings of a small program whose fault is known."""

import os
import subprocess
from pathlib import Path

import pytest

import homenode

ROOT = Path(__file__).resolve().parents[2]
#: Its first line says what is wrong with it: one thread touches ``grid`` and ``next`` first.
SOURCE = ROOT / "tests" / "explain" / "serial_first_touch.c"
MACHINE = str(ROOT / "tests" / "explain" / "two-nodes.toml")


def pytest_configure(config):
    try:
        homenode.find_command()
    except homenode.HomenodeError as e:
        pytest.exit(f"{e}: cargo build --workspace, then HOMENODE=target/debug", returncode=2)


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """The program, built to be recorded."""
    path = tmp_path_factory.mktemp("program") / "stencil"
    subprocess.run([homenode.find_command("homenode-cc"), "-g", "-O1", "-fopenmp", SOURCE, "-o", path], check=True)
    return path


#: Rows of its arrays: few, and they do not fit the caches of MACHINE.
ROWS = "200"


@pytest.fixture(scope="session")
def recording(program, tmp_path_factory):
    """A recording of every access of four threads, with a filter that fits the small caches of MACHINE."""
    path = tmp_path_factory.mktemp("recording") / "stencil.hnrec"
    return homenode.record([str(program), ROWS], output=path, threads=4, filter=1024).path


@pytest.fixture(scope="session")
def rec(recording):
    """That recording on a machine with two nodes."""
    return homenode.open(recording, machine=MACHINE)


@pytest.fixture(scope="session")
def sampled(tmp_path_factory):
    """A data set of a live run of the program as any compiler builds it: sightings, not counts."""
    folder = tmp_path_factory.mktemp("live")
    subprocess.run(["gcc", "-g", "-O1", "-fopenmp", SOURCE, "-o", folder / "plain"], check=True)
    done = homenode.record([str(folder / "plain")], output=folder / "live.hnrec", on="live", pretend_nodes=2, threads=2)
    return homenode.open(done.path)


@pytest.fixture
def no_home(monkeypatch, tmp_path):
    """A process whose current folder is its own."""
    monkeypatch.chdir(tmp_path)
    return Path(os.getcwd())
