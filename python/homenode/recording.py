"""Recordings as tables.

:func:`open` gives a :class:`Recording` at once. The first use of a table writes the recording as Parquet
(``homenode rec export``) into a cache beside the recording; every later use, also of another process, reads that. No
optional package is needed before a table is asked for its rows.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from . import _command, commands, errors, plots
from ._command import PathLike
from .results import Explanation

#: The tables, in the order of docs/dataset.md.
TABLES = (
    "meta",
    "nodes",
    "links",
    "threads",
    "objects",
    "first_touches",
    "regions",
    "intervals",
    "region_times",
    "iterations",
    "accesses",
    "residency",
    "migrations",
    "samples",
    "own_cost",
)

#: The folder beside a recording in which its exports lie.
CACHE = ".homenode-cache"
#: The file by which an export is known.
MARK = "_homenode.json"


class Table:
    """A table of a recording. Nothing is read before a method is called.

    The table has the Arrow C stream interface, so libraries take it as it is: ``polars.DataFrame(table)``,
    ``pyarrow.table(table)``, ``duckdb.from_arrow(table.arrow())``.
    """

    def __init__(self, recording: Recording, name: str) -> None:
        self._recording = recording
        #: The name of the table.
        self.name = name

    @property
    def folder(self) -> Path:
        """The folder with the Parquet files, in Hive partitions by host, job and rank."""
        return self._recording.export() / self.name

    @property
    def files(self) -> List[Path]:
        """The Parquet files, one for each rank."""
        return sorted(self.folder.glob("**/*.parquet"))

    def __len__(self) -> int:
        """The number of rows. Needs no optional package."""
        return int(self._recording._mark()["rows"][self.name])

    def dataset(self) -> Any:
        """The table as a ``pyarrow.dataset.Dataset``, which reads columns and rows when they are asked for."""
        try:
            import pyarrow as pa
            import pyarrow.dataset as ds
        except ImportError:
            raise errors.optional("pyarrow", "arrow") from None
        fields = [("host", pa.string()), ("job", pa.string()), ("rank", pa.int64())]
        return ds.dataset(str(self.folder), format="parquet", partitioning=ds.partitioning(pa.schema(fields), flavor="hive"))

    def arrow(self, columns: Optional[List[str]] = None, filter: Any = None) -> Any:
        """The rows as a ``pyarrow.Table``; ``columns`` and ``filter`` as ``pyarrow.dataset`` takes them."""
        return self.dataset().to_table(columns=columns, filter=filter)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.arrow().__arrow_c_stream__(requested_schema)

    def pandas(self, columns: Optional[List[str]] = None) -> Any:
        """The rows as a pandas ``DataFrame``. Integers that may be null have the type ``Int64``."""
        try:
            import pandas as pd
        except ImportError:
            raise errors.optional("pandas", "pandas") from None
        table = self.arrow(columns)
        return table.to_pandas(types_mapper=_nullable(pd))

    def polars(self) -> Any:
        """The table as a Polars ``LazyFrame``; ``.collect()`` gives the rows."""
        try:
            import polars as pl
        except ImportError:
            raise errors.optional("polars", "polars") from None
        return pl.scan_parquet(self.files, hive_partitioning=True, glob=False)

    def sql(self, query: str) -> Any:
        """The answer of DuckDB to a query, in which the table is called ``this``; the others have their names.

        The answer is a ``DuckDBPyRelation``: ``.fetchall()``, ``.df()``, ``.pl()``, ``.arrow()``.
        """
        return self._recording._sql(query, self.name)

    def rows(self, columns: Optional[List[str]] = None, where: Optional[Dict[str, Any]] = None) -> List[Dict[str, Any]]:
        """The rows as dictionaries, by whichever of pyarrow, Polars and DuckDB is there.

        ``columns`` are read alone; ``where`` keeps the rows that have these values.
        """
        for way in (_rows_by_arrow, _rows_by_polars, _rows_by_duckdb):
            try:
                return way(self, columns, where or {})
            except ImportError:
                continue
        raise errors.MissingPackage(
            "nothing here reads Parquet: pip install 'homenode[arrow]', or pip install pyarrow (or polars, or duckdb)"
        )

    def about(self) -> Dict[str, Tuple[str, str]]:
        """What each column means, and its unit."""
        try:
            import pyarrow.parquet as pq
        except ImportError:
            raise errors.optional("pyarrow", "arrow") from None
        known = {k.decode(): v.decode() for k, v in (pq.read_schema(self.files[0]).metadata or {}).items()}
        mark = "homenode.column."
        names = [k[len(mark) :] for k in known if k.startswith(mark)]
        return {n: (known[mark + n], known.get(f"homenode.unit.{n}", "")) for n in names}

    def __repr__(self) -> str:
        return f"<homenode.Table {self.name} of {self._recording.path}>"


def _nullable(pd: Any) -> Any:
    import pyarrow as pa

    # A null would make floats of integers, and 2^53 + 1 is not one.
    return {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get


_Columns = Optional[List[str]]
_Where = Dict[str, Any]


def _rows_by_arrow(table: Table, columns: _Columns, where: _Where) -> List[Dict[str, Any]]:
    import pyarrow.dataset as ds

    kept: Any = None
    for name, value in where.items():
        one = ds.field(name) == value
        kept = one if kept is None else kept & one
    return list(table.arrow(columns, kept).to_pylist())


def _rows_by_polars(table: Table, columns: _Columns, where: _Where) -> List[Dict[str, Any]]:
    import polars as pl

    frame = table.polars()
    for name, value in where.items():
        frame = frame.filter(pl.col(name) == value)
    return list((frame.select(columns) if columns else frame).collect().to_dicts())


def _rows_by_duckdb(table: Table, columns: _Columns, where: _Where) -> List[Dict[str, Any]]:
    answer = table.sql("FROM this")
    for name, value in where.items():
        text = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else value
        answer = answer.filter(f'"{name}" = {text}')
    if columns:
        answer = answer.project(", ".join(f'"{name}"' for name in columns))
    return [dict(zip(answer.columns, row)) for row in answer.fetchall()]


class Recording:
    """A recording of any kind, or an export of one; made by :func:`open`.

    Its tables are properties: ``rec.accesses``, ``rec.objects`` and so on. docs/dataset.md lists tables and columns.
    """

    def __init__(
        self,
        path: PathLike,
        machine: Optional[PathLike] = None,
        policy: Optional[str] = None,
        page: Optional[str] = None,
        cache: Union[PathLike, bool] = True,
    ) -> None:
        #: Where it is.
        self.path = Path(os.fspath(path))
        if not self.path.exists():
            raise errors.NotFound(f"there is no recording {self.path}\n  help: 'homenode record -- APP' makes one")
        self._simulation = {"machine": machine and os.fspath(machine), "policy": policy, "page": page}
        self._cache = cache
        self._export: Optional[Path] = None
        self._connection: Any = None
        self._is_export = (self.path / MARK).is_file()
        if self._is_export and any(self._simulation.values()):
            raise errors.UsageError("an export tells where pages lived: it is not simulated")

    # --- the tables -------------------------------------------------------------------------------

    @property
    def meta(self) -> Table:
        """The recording itself: one row."""
        return Table(self, "meta")

    @property
    def nodes(self) -> Table:
        """Nodes of the machine."""
        return Table(self, "nodes")

    @property
    def links(self) -> Table:
        """What lies between two nodes."""
        return Table(self, "links")

    @property
    def threads(self) -> Table:
        """Stays of threads on CPUs."""
        return Table(self, "threads")

    @property
    def objects(self) -> Table:
        """Variables, and allocations by the place of the source that makes them."""
        return Table(self, "objects")

    @property
    def first_touches(self) -> Table:
        """First touches of runs of pages."""
        return Table(self, "first_touches")

    @property
    def regions(self) -> Table:
        """Regions of the source."""
        return Table(self, "regions")

    @property
    def intervals(self) -> Table:
        """Stretches of time: accesses and homes are told by interval."""
        return Table(self, "intervals")

    @property
    def region_times(self) -> Table:
        """Runs of a region within an interval."""
        return Table(self, "region_times")

    @property
    def iterations(self) -> Table:
        """Rounds of the outer loop."""
        return Table(self, "iterations")

    @property
    def accesses(self) -> Table:
        """What each node did to blocks of objects, by interval, with the basis of each count."""
        return Table(self, "accesses")

    @property
    def residency(self) -> Table:
        """Where runs of pages lived."""
        return Table(self, "residency")

    @property
    def migrations(self) -> Table:
        """Runs of pages that moved together, with cause and cost."""
        return Table(self, "migrations")

    @property
    def samples(self) -> Table:
        """The guard's samples of moved and held-back pages."""
        return Table(self, "samples")

    @property
    def own_cost(self) -> Table:
        """What homenode itself had cost by a moment."""
        return Table(self, "own_cost")

    def __iter__(self) -> Iterator[Table]:
        return (Table(self, name) for name in TABLES)

    def __getitem__(self, name: str) -> Table:
        if name not in TABLES:
            raise KeyError(f"there is no table {name}; there are {', '.join(TABLES)}")
        return Table(self, name)

    # --- what is asked of all of them -------------------------------------------------------------

    def sql(self, query: str) -> Any:
        """The answer of DuckDB to a query over the tables: ``rec.sql("SELECT name, bytes FROM objects")``."""
        return self._sql(query, None)

    def _sql(self, query: str, this: Optional[str]) -> Any:
        try:
            import duckdb
        except ImportError:
            raise errors.optional("duckdb", "duckdb") from None
        if self._connection is None:
            self._connection = duckdb.connect()
            for table in self:
                files = ", ".join("'" + str(f).replace("'", "''") + "'" for f in table.files)
                source = f"read_parquet([{files}], hive_partitioning = true)"
                self._connection.sql(f"CREATE VIEW {table.name} AS FROM {source}")
        if this is not None:
            self._connection.sql(f"CREATE OR REPLACE TEMP VIEW this AS FROM {this}")
        return self._connection.sql(query)

    @property
    def missing(self) -> List[str]:
        """What the recording lacks, a sentence each. Empty: it is whole."""
        return [sentence for row in self.meta.rows() for sentence in row["missing"]]

    def explain(self, **options: Any) -> Explanation:
        """What is wrong and what to change; ``options`` as :func:`homenode.explain` takes them."""
        options.setdefault("machine", self._simulation["machine"])
        options.setdefault("page", self._simulation["page"])
        return commands.explain(self.path, **options)

    def plot_residency(self, objects: Optional[List[str]] = None, ax: Any = None) -> Any:
        """Draws where pages lived over time; see :func:`homenode.plots.residency`."""
        return plots.residency(self, objects, ax)

    def plot_accesses(self, object: Union[str, int, None] = None, ax: Any = None) -> Any:
        """Draws which node accessed which pages of an object; see :func:`homenode.plots.accesses`."""
        return plots.accesses(self, object, ax)

    # --- the export -------------------------------------------------------------------------------

    def export(self) -> Path:
        """The folder with the recording as Parquet, made if need be."""
        if self._export is None:
            self._export = self.path if self._is_export else self._made()
        return self._export

    def _mark(self) -> Dict[str, Any]:
        mark: Dict[str, Any] = json.loads((self.export() / MARK).read_text())
        return mark

    def _made(self) -> Path:
        stamp = self._stamp()
        folder = self._folder()
        export = folder / f"{self.path.name}-{stamp}"
        if (export / MARK).is_file():
            return export
        with tempfile.TemporaryDirectory(prefix="homenode-") as work:
            try:
                ended = _command.run(["rec", "export", "--quiet", "--json", self._simulated(Path(work)), "-o", export])
            except OSError as e:
                raise errors.Failed(f"cannot export {self.path}: {e}") from e
        if ended.status not in (0, 3) and not (export / MARK).is_file():
            # Another process may have been faster; else it is an error.
            raise ended.error()
        if ended.status == 3:
            warnings.warn(errors.message_of(ended.stderr), errors.PartialWarning, stacklevel=5)
        self._forget_others(export)
        return export

    def _forget_others(self, export: Path) -> None:
        """Removes exports of the recording as it was, or as another homenode read it."""
        for note in export.parent.glob("*.json"):
            try:
                if json.loads(note.read_text()) == self._identity() and note.stem != export.name:
                    shutil.rmtree(export.parent / note.stem, ignore_errors=True)
                    note.unlink()
            except (OSError, ValueError):
                continue
        (export.parent / f"{export.name}.json").write_text(json.dumps(self._identity()))

    def _identity(self) -> Dict[str, Any]:
        return {"recording": str(self.path.absolute()), **self._simulation}

    def _simulated(self, work: Path) -> Path:
        """A data set of the recording on the machine that was asked for."""
        asked = self._simulation
        if not any(asked.values()):
            return self.path
        options = commands.options(machine=asked["machine"], policy=asked["policy"] or "first-touch", page=asked["page"])
        _command.answer(["compare", "--json", "--quiet", *options, "--keep", work, self.path], "homenode/compare/1")
        kept = [p for p in sorted(work.glob("*.hnrec")) if (p / "dataset.json").is_file()]
        if len(kept) != 1:
            raise errors.Failed(f"cannot simulate {self.path}: {len(kept)} data sets came of it")
        return kept[0]

    def _folder(self) -> Path:
        """Where exports of this recording lie: beside it, else in a temporary folder of this process."""
        if self._cache is not True and self._cache is not False:
            folder = Path(os.fspath(self._cache))
            folder.mkdir(parents=True, exist_ok=True)
            return folder
        if self._cache:
            folder = self.path.absolute().parent / CACHE
            try:
                folder.mkdir(mode=0o700, exist_ok=True)
                if os.access(folder, os.W_OK | os.X_OK):
                    return folder
            except OSError:
                pass
        return _temporary()

    def _stamp(self) -> str:
        """Tells this state of the recording, read by this homenode, from all others."""
        command = _command.find().stat()
        digest = hashlib.sha256(f"{command.st_size} {command.st_mtime_ns}".encode())
        digest.update(json.dumps(self._simulation, sort_keys=True).encode())
        machine = self._simulation["machine"]
        files = [Path(machine)] if machine and os.path.isfile(machine) else []
        files += sorted(p for p in self.path.glob("**/*") if p.is_file() and not p.name.startswith("view."))
        for file in files:
            status = file.stat()
            digest.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()[:16]

    def __repr__(self) -> str:
        said = ", ".join(f"{k}={v}" for k, v in self._simulation.items() if v)
        return f"<homenode.Recording {self.path}{', ' + said if said else ''}>"


_TEMPORARY: List[Path] = []


def _temporary() -> Path:
    if not _TEMPORARY:
        folder = Path(tempfile.mkdtemp(prefix="homenode-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _TEMPORARY.append(folder)
    return _TEMPORARY[0]


def open(
    path: PathLike,
    *,
    machine: Optional[PathLike] = None,
    policy: Optional[str] = None,
    page: Optional[str] = None,
    cache: Union[PathLike, bool] = True,
) -> Recording:
    """Opens a recording of any kind, or an export of one.

    Args:
        path: the recording.
        machine, policy, page: simulate a recording of accesses so. Default: as ``homenode show`` does, first touch.
        cache: where the tables are kept as Parquet: beside the recording in ``.homenode-cache`` (``True``), in a
            temporary folder of this process (``False``, and where nothing can be written beside it), or in a folder.

    Raises:
        NotFound: nothing is there.
        UsageError: an export is to be simulated.
    """
    return Recording(path, machine, policy, page, cache)


__all__ = ["Recording", "Table", "TABLES", "open"]
