"""Results by content. The key of a cell is a digest of all that its result depends on.

======================================  ==========================================================
path below the folder of the sweep      what
======================================  ==========================================================
``cells/ab/abcd….json``                 the result of one cell
``recordings/KEY.hnrec``                a program that was recorded for the sweep
``digests.json``                        digests of recordings, by path, size and time
``results/machine=M/part-0.parquet``    all rows, or ``results.jsonl`` where there is no pyarrow
======================================  ==========================================================

Every file appears whole or not at all, so that a sweep can be killed at any moment.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import urllib.parse
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Tuple

from .. import errors

#: Version of what the keys are made of.
SCHEMA = 1

#: The columns of a row: name, type, unit.
COLUMNS: Tuple[Tuple[str, str, str], ...] = (
    ("program", "text", ""),
    ("machine", "text", ""),
    ("policy", "text", ""),
    ("threads", "integer", ""),
    ("accesses", "integer", "accesses"),
    ("time", "number", "s"),
    ("remote", "number", "%"),
    ("moved", "integer", "pages"),
    ("overhead", "number", "s"),
    ("above_bound", "number", "%"),
    ("over_floor", "number", "%"),
    ("over_bound", "number", "%"),
    ("over_oracle", "number", "%"),
    ("over_best", "number", "%"),
    ("warnings", "texts", ""),
    ("error", "text", ""),
)


def key_of(parts: Any) -> str:
    """The digest of plain data.

    >>> key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
    True
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def write(path: Path, data: bytes) -> None:
    """Writes a file that appears whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_bytes(data)
    os.replace(new, path)


def digest_of_file(path: Path) -> str:
    """The digest of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            digest.update(part)
    return digest.hexdigest()


class Store:
    """The folder of a sweep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            (folder / "cells").mkdir(parents=True, exist_ok=True)
            (folder / "recordings").mkdir(exist_ok=True)
        except OSError as e:
            raise errors.UsageError(f"cannot write to {folder}: {e}") from e
        self._clean()

    def _clean(self) -> None:
        """Removes recordings that a killed sweep of this host had begun."""
        for part in (self.folder / "recordings").glob(f"*.part-{socket.gethostname()}-*"):
            number = part.name.rsplit("-", 1)[-1]
            if number.isdigit() and not Path(f"/proc/{number}").exists():
                shutil.rmtree(part, ignore_errors=True)

    # --- cells ------------------------------------------------------------------------------------

    def _cell(self, key: str) -> Path:
        return self.folder / "cells" / key[:2] / f"{key}.json"

    def get(self, key: str) -> Optional[Dict[str, Any]]:
        """The result of a cell that is there. A damaged one counts as absent."""
        try:
            found = json.loads(self._cell(key).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def put(self, key: str, values: Dict[str, Any]) -> None:
        """Keeps the result of a cell."""
        write(self._cell(key), json.dumps(values, sort_keys=True, ensure_ascii=False).encode())

    # --- recordings -------------------------------------------------------------------------------

    def recording(self, key: str) -> Path:
        """Where the recording of a program is or will be."""
        return self.folder / "recordings" / f"{key}.hnrec"

    def digest(self, recording: Path) -> str:
        """The digest of a recording's content, which is computed once for a state of its files."""
        files = sorted(p for p in recording.glob("**/*") if p.is_file() and not p.name.startswith("view."))
        if not files:
            raise errors.UsageError(f"{recording} is no recording: it is empty")
        status = [(str(f.relative_to(recording)), f.stat()) for f in files]
        state = key_of([[name, s.st_size, s.st_mtime_ns] for name, s in status])
        known = self._digests()
        at = str(recording.absolute())
        if known.get(at, [None])[0] != state:
            content = key_of([[str(f.relative_to(recording)), digest_of_file(f)] for f in files])
            known[at] = [state, content]
            write(self.folder / "digests.json", json.dumps(known, sort_keys=True, indent=1).encode())
        return str(known[at][1])

    def _digests(self) -> Dict[str, List[str]]:
        try:
            found = json.loads((self.folder / "digests.json").read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    # --- results ----------------------------------------------------------------------------------

    def write_results(self, rows: List[Dict[str, Any]], form: Optional[str]) -> Path:
        """Writes all rows; the same rows give the same bytes. ``form``: ``parquet``, ``jsonl``, or what is possible."""
        parquet, lines = self.folder / "results", self.folder / "results.jsonl"
        if form is None:
            try:
                import pyarrow  # noqa: F401

                form = "parquet"
            except ImportError:
                form = "jsonl"
        if form == "jsonl":
            write(lines, b"".join(json.dumps(r, ensure_ascii=False).encode() + b"\n" for r in rows))
            shutil.rmtree(parquet, ignore_errors=True)
            return lines
        new = self.folder / f".results.{os.getpid()}"
        shutil.rmtree(new, ignore_errors=True)
        for machine in dict.fromkeys(r["machine"] for r in rows):
            folder = new / f"machine={urllib.parse.quote(machine, safe='')}"
            folder.mkdir(parents=True)
            _write_parquet(folder / "part-0.parquet", [r for r in rows if r["machine"] == machine])
        shutil.rmtree(parquet, ignore_errors=True)
        os.replace(new, parquet)
        lines.unlink(missing_ok=True)
        return parquet


def _write_parquet(path: Path, rows: Iterable[Dict[str, Any]]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise errors.optional("pyarrow", "arrow") from None
    kinds = {"text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "texts": pa.list_(pa.string())}
    # The partition's folder says the machine.
    fields = [pa.field(n, kinds[k], metadata={"unit": u} if u else None) for n, k, u in COLUMNS if n != "machine"]
    table = pa.Table.from_pylist([{f.name: r[f.name] for f in fields} for r in rows], schema=pa.schema(fields))
    pq.write_table(table, path, compression="zstd")
