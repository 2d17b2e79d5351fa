"""Recordings as tables, by each library that reads them."""

import os
import re
import shutil
import subprocess
import sys

import pytest

import homenode
from conftest import MACHINE, ROOT
from homenode.recording import CACHE, MARK


def test_every_table_of_the_documentation_is_there(rec):
    text = (ROOT / "docs" / "dataset.md").read_text().split("## The tables")[1]
    documented = dict(re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", text, re.M | re.S))
    assert list(documented) == list(homenode.TABLES)
    for name, page in documented.items():
        table = getattr(rec, name)
        columns = re.findall(r"^\| `(\w+)` \|", page, re.M)
        assert table.arrow().column_names == [*columns, "host", "job", "rank"], name
        assert len(table) == table.arrow().num_rows == len(table.rows()), name
        meanings = table.about()
        assert list(meanings) == columns and all(text for text, _ in meanings.values()), name
    assert type(rec).__doc__ and all(getattr(type(rec), name).__doc__ for name in homenode.TABLES)


def test_all_libraries_read_the_same(rec):
    import duckdb
    import polars as pl
    import pyarrow as pa

    table = rec.accesses
    total = sum(row["count"] for row in table.rows())
    assert total > 100_000
    assert pa.compute.sum(table.arrow()["count"]).as_py() == total
    assert table.pandas()["count"].sum() == total
    assert table.polars().select(pl.col("count").sum()).collect().item() == total
    assert table.sql('SELECT sum("count") FROM this').fetchall() == [(total,)]
    # The Arrow C stream.
    assert pa.table(table).num_rows == len(table) and pl.DataFrame(table).height == len(table)
    arrow = table.arrow(columns=["node", "count"])
    assert duckdb.sql("SELECT count(*) FROM arrow").fetchall() == [(len(table),)]
    # Integers that may be null stay integers.
    assert str(rec.accesses.pandas()["one_in"].dtype) == "Int64"


def test_a_query_joins_the_tables(rec):
    query = 'SELECT o.name, sum(a."count") AS n FROM accesses a JOIN objects o USING (object) GROUP BY ALL ORDER BY n DESC'
    names = [row[0] for row in rec.sql(query).fetchall()]
    assert {"grid", "next"} == set(names[:2])


def test_it_opens_without_reading_and_exports_once(recording, tmp_path):
    copy = tmp_path / "it's [a] copy.hnrec"
    shutil.copytree(recording, copy)
    rec = homenode.open(copy)
    cache = tmp_path / CACHE
    assert not cache.exists() and "copy.hnrec" in repr(rec)
    export = rec.export()
    assert export.parent == cache and (export / MARK).is_file()
    assert rec.sql("SELECT count(*) FROM meta").fetchall() == [(1,)] and rec.objects.polars().collect().height > 0
    stamp = (export / MARK).stat().st_mtime_ns
    assert homenode.open(copy).export() == export and (export / MARK).stat().st_mtime_ns == stamp
    # Another state of the recording is exported anew, and the old export goes.
    os.utime(copy / "meta.json")
    anew = homenode.open(copy).export()
    assert anew != export and not export.exists()


def test_a_simulation_has_a_cache_of_its_own(rec, recording):
    other = homenode.open(recording, machine=MACHINE, policy="round-robin")
    assert other.export() != rec.export() and rec.export().exists()
    first, dealt = (r.sql("SELECT home, sum(pages) FROM residency GROUP BY home").fetchall() for r in (rec, other))
    assert len(dealt) == 2 and sorted(first) != sorted(dealt)
    assert rec.meta.rows()[0]["policy"] == "first-touch" and other.meta.rows()[0]["policy"] == "round-robin"
    assert rec.missing == []


def test_nothing_is_written_beside_it_where_that_is_not_wanted(recording, tmp_path):
    copy = tmp_path / "copy.hnrec"
    shutil.copytree(recording, copy)
    assert len(homenode.open(copy, cache=False).nodes) == 2
    assert sorted(os.listdir(tmp_path)) == ["copy.hnrec"]
    assert homenode.open(copy, cache=tmp_path / "mine").export().parent == tmp_path / "mine"


def test_an_export_opens_too(rec, tmp_path):
    again = homenode.open(rec.export())
    assert len(again.accesses) == len(rec.accesses) and again.export() == rec.export()
    with pytest.raises(homenode.UsageError, match="not simulated"):
        homenode.open(rec.export(), machine="2s-xeon")


def test_what_is_no_recording_is_refused(tmp_path):
    with pytest.raises(homenode.NotFound, match="no recording"):
        homenode.open(tmp_path / "nothing.hnrec")
    with pytest.raises(homenode.UsageError, match="cannot read"):
        homenode.open(tmp_path).export()
    with pytest.raises(KeyError, match="accesses"):
        homenode.Recording(tmp_path)["access"]


def test_a_cut_off_recording_is_partial(recording, tmp_path):
    copy = tmp_path / "cut.hnrec"
    shutil.copytree(recording, copy)
    log = sorted((copy / "threads").iterdir())[1]
    with open(log, "r+b") as file:
        file.truncate(log.stat().st_size // 2)
    with pytest.warns(homenode.PartialWarning, match="partial"):
        assert homenode.open(copy).missing
    with pytest.warns(homenode.PartialWarning):
        assert homenode.explain(copy, machine=MACHINE).partial


def test_a_live_recording_has_no_count_where_it_saw_presence(sampled):
    rows = sampled.accesses.rows()
    assert rows and {row["basis"] for row in rows} <= {"presence", "sampled", "exact"}
    assert all(row["count"] is None for row in rows if row["basis"] == "presence")


WITHOUT = """
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in {blocked!r} else self.finder.find_spec(name, path, target)
sys.meta_path[:] = map(Without, sys.meta_path)
import homenode
rec = homenode.open({path!r}, machine={machine!r})
"""


def without(recording, blocked, code):
    """Runs code where packages are not installed."""
    text = WITHOUT.format(blocked=blocked, path=str(recording), machine=MACHINE) + code
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    return done.stdout + done.stderr


ALL = ["pyarrow", "pandas", "polars", "duckdb", "matplotlib"]


@pytest.mark.parametrize(
    "code, package, extra",
    [
        ("rec.nodes.arrow()", "pyarrow", "arrow"),
        ("rec.nodes.pandas()", "pandas", "pandas"),
        ("rec.nodes.polars()", "polars", "polars"),
        ("rec.sql('FROM nodes')", "duckdb", "duckdb"),
        ("rec.plot_residency()", "pyarrow", "arrow"),
    ],
)
def test_what_is_not_installed_is_named(recording, code, package, extra):
    said = without(recording, ALL, code)
    assert "MissingPackage" in said and f"pip install {package}" in said and f"homenode[{extra}]" in said


def test_rows_need_one_reader_and_their_number_none(recording):
    assert without(recording, ALL, "print(len(rec.nodes))").strip() == "2"
    for reader in ("pyarrow", "polars", "duckdb"):
        blocked = [name for name in ALL if name != reader]
        assert without(recording, blocked, "print([r['node'] for r in rec.nodes.rows()])").strip() == "[0, 1]"
        chosen = "print(rec.links.rows(['to_node', 'distance'], {'from_node': 1}))"
        assert without(recording, blocked, chosen).count("to_node") == 2
