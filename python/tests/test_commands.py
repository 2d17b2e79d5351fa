"""The commands as functions: results, and an exception for each exit status."""

import pickle

import pytest

import homenode
from conftest import MACHINE, ROWS, SOURCE
from homenode import errors


def test_explain_names_the_line_and_the_fix(recording):
    answer = homenode.explain(recording, machine=MACHINE)
    finding = answer.findings[0]
    assert {v.name for v in finding.variables} == {"grid", "next"}
    assert finding.pattern == "serial-first-touch"
    # The line that the source's first line names.
    line = next(w for w in SOURCE.read_text().splitlines()[0].split() if w.startswith("touched=")).split("=")[1]
    assert str(finding.touched) == f"serial_first_touch.c:{line}"
    fix = finding.fixes[0]
    assert fix.kind == "parallel-first-touch" and fix.effect.change < -5
    assert fix.effect.remote_after < fix.effect.remote_before
    assert answer.threads == 4 and not answer.partial and answer.json["schema"] == "homenode/explain/1"
    assert "serial first touch" in str(answer) and "**grid, next" in answer._repr_markdown_()


def test_explain_of_a_program_is_that_of_its_recording(program, recording):
    live = homenode.explain([str(program), ROWS], machine=MACHINE, threads=4)
    assert [f.names for f in live.findings] == [f.names for f in homenode.explain(recording, machine=MACHINE).findings]


def test_a_change_that_changes_nothing_leaves_the_findings(recording):
    answer = homenode.changed(recording, recording, machine=MACHINE)
    assert len(answer.left) == 1 and not answer.gone and not answer.new
    assert answer.time.change == 0.0 and "1 left" in str(answer)


def test_compare_is_a_table(recording):
    table = homenode.compare(recording, machines=[MACHINE, "2s-xeon"], policies=["first-touch", "round-robin"])
    assert len(table) == 4 and table.units["time"] == "s"
    names = {row["machine"] for row in table}
    first = table.row("first-touch", "2s-xeon")
    assert len(names) == 2 and first["time"] > 0 and first["remote"] > 10
    frame = table.pandas()
    assert list(frame["scheme"]) == [row["scheme"] for row in table] and str(table).count("\n") == 4
    assert table.why(0, "to_uma") == "no UMA to compare with"
    with pytest.raises(KeyError, match="round-robin"):
        table.row("nothing")


def test_machines_are_those_of_the_command():
    assert {"2s-xeon", "epyc-nps4", "sf15k"} <= set(homenode.machines())


def test_record_keeps_output_and_report(program, no_home):
    done = homenode.record([str(program), ROWS], threads=2)
    assert done.path.name == "stencil-1.hnrec" and done.path.is_dir() and done.status == 0
    assert "recorded: stencil-1.hnrec" in done.report and "homenode:" not in done.stdout
    with pytest.raises(homenode.Failed, match="File exists(.|\n)*--force"):
        homenode.record([str(program), ROWS], output=done.path)
    assert homenode.record([str(program), ROWS], output=done.path, force=True, threads=2).path == done.path


@pytest.mark.parametrize("status", [1, 2, 3, 125])
def test_the_status_of_a_program_is_the_programs(tmp_path, status):
    source, binary = tmp_path / "a.c", tmp_path / "a"
    source.write_text(f"int main(void) {{ return {status}; }}")
    import subprocess

    subprocess.run([homenode.find_command("homenode-cc"), source, "-o", binary], check=True)
    done = homenode.record([str(binary)], output=tmp_path / "a.hnrec", check=False)
    assert done.status == status
    with pytest.raises(homenode.ProgramFailed) as error:
        homenode.record([str(binary)], output=tmp_path / "b.hnrec")
    assert error.value.status == status and (tmp_path / "b.hnrec").is_dir()


def test_each_status_has_an_exception(tmp_path, recording):
    with pytest.raises(homenode.UsageError, match="there is no machine|no machine|unknown") as error:
        homenode.explain(recording, machine="no-such-machine")
    assert error.value.status == 2 and "help" in str(error.value) or "machine" in str(error.value)
    with pytest.raises(homenode.NotFound) as error:
        homenode.record(["/no/such/program"], output=tmp_path / "x")
    assert error.value.status == 127
    script = tmp_path / "not-executable"
    script.write_text("x")
    with pytest.raises(homenode.CannotRun) as error:
        homenode.record([str(script)], output=tmp_path / "x")
    assert error.value.status == 126
    with pytest.raises(homenode.UsageError):
        homenode.explain([])
    copy = pickle.loads(pickle.dumps(error.value))
    assert type(copy) is homenode.CannotRun and copy.status == 126 and copy.command == error.value.command


def test_statuses_without_a_way_to_provoke_them():
    of = errors.of_status
    assert isinstance(of(1, "", []), homenode.ConditionHeld) and isinstance(of(3, "", []), homenode.PartialResult)
    killed = of(-9, "", ["homenode"])
    assert isinstance(killed, homenode.Killed) and "SIGKILL" in str(killed) and killed.status == 137
    assert isinstance(of(125, "homenode: broken", []), homenode.Failed)


def test_a_command_that_is_nowhere_says_where_it_was_looked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("HOMENODE", str(tmp_path))
    with pytest.raises(homenode.CommandMissing, match="HOMENODE"):
        homenode.machines()
