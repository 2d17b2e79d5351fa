"""Sweeps as jobs of a real Slurm: slurmctld and slurmd of Debian, on this machine alone."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

import homenode
from homenode.sweeps import SlurmExecutor
from test_sweep import content, description, whole  # noqa: F401: fixtures

DAEMONS = ("munged", "slurmctld", "slurmd")

CONFIGURATION = """\
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=60 State=UP
"""


def daemon(name):
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A cluster of one node; its folder."""
    if os.getuid() != 0 or not all(map(daemon, DAEMONS)):
        pytest.skip("Slurm takes root and Debian's packages munge, slurmctld, slurmd and slurm-client")
    pytest.importorskip("submitit")
    # A socket's path is at most 107 bytes long, and munge wants folders that others cannot write.
    folder = Path(f"/var/lib/homenode-slurm-{os.getpid()}")
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir(parents=True, mode=0o700)
    key = folder / "munge/key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    munge = {"key-file": key, "socket": folder / "munge/socket", "pid-file": folder / "munge/pid"}
    munge.update({"log-file": folder / "munge/log", "seed-file": folder / "munge/seed"})
    host = socket.gethostname().split(".")[0]
    text = CONFIGURATION.format(host=host, folder=folder, ports=(free_port(), free_port()))
    (folder / "slurm.conf").write_text(text)
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    started = []
    try:
        subprocess.run([daemon("munged"), "--force", *(f"--{k}={v}" for k, v in munge.items())], check=True)
        for words in (["slurmctld", "-D", "-i"], ["slurmd", "-D"]):
            log = (folder / f"{words[0]}.out").open("w")
            started.append(subprocess.Popen([daemon(words[0]), *words[1:]], env=environment, stdout=log, stderr=log))
        deadline = time.monotonic() + 120
        while "idle" not in (said := subprocess.run(["sinfo"], env=environment, capture_output=True, text=True).stdout):
            assert time.monotonic() < deadline, said + (folder / "slurmctld.log").read_text()[-2000:]
            time.sleep(0.5)
        old, os.environ["SLURM_CONF"] = os.environ.get("SLURM_CONF"), environment["SLURM_CONF"]
        yield folder
        if old is None:
            del os.environ["SLURM_CONF"]
        else:
            os.environ["SLURM_CONF"] = old
    finally:
        for process in started[::-1]:
            process.terminate()
            process.wait(60)
        pid = folder / "munge/pid"
        if pid.exists():
            os.kill(int(pid.read_text()), 15)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def jobs(slurm, tmp_path):
    executor = SlurmExecutor(tmp_path / "jobs", every=0.5, patience=5.0)
    yield executor
    executor.shutdown(cancel_futures=True)


def test_a_sweep_as_an_array_of_jobs(jobs, description, whole, tmp_path):  # noqa: F811
    outcome = homenode.sweep(description, tmp_path / "results", executor=jobs)
    assert outcome.computed == 9 and not outcome.failed
    assert content(outcome.path) == content(whole.path)
    # Three machines, submitted together: the tasks of one array.
    names = {p.name.split("_result")[0] for p in (tmp_path / "jobs").glob("*_result.pkl")}
    assert len(names) == 3 and len({n.split("_")[0] for n in names}) == 1, names


def test_a_job_that_is_cancelled_is_an_error_of_its_task(jobs):
    slow, quick = jobs.submit(time.sleep, 600), jobs.submit(os.getpid)
    assert quick.result(120) != os.getpid()
    running = subprocess.run(["squeue", "--noheader", "--array", "--format=%i"], capture_output=True, text=True, check=True)
    subprocess.run(["scancel", *running.stdout.split()], check=True)
    with pytest.raises(RuntimeError, match="Slurm ended job .*, and it left no result"):
        slow.result(120)


def test_without_slurm_it_says_so(tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(homenode.HomenodeError, match="no Slurm here"):
        SlurmExecutor(tmp_path / "jobs")
