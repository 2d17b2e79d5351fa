"""Reads an export with DuckDB and Polars; prints what they find as JSON.

Usage: readers.py OUT QUERIES: QUERIES is a file of SQL statements, separated by lines of dashes.
"""

import json
import sys
from pathlib import Path

import duckdb
import polars as pl

out, queries = sys.argv[1], Path(sys.argv[2]).read_text().split("\n--------\n")
tables = sorted(p.name for p in Path(out).iterdir() if p.is_dir())
PARTITION = {"host", "job", "rank"}


def by_duckdb():
    con = duckdb.connect()
    found = {}
    for table in tables:
        source = f"read_parquet('{out}/{table}/**/*.parquet', hive_partitioning = true)"
        rows = con.sql(f"SELECT count(*) FROM {source}").fetchall()[0][0]
        columns = {}
        for name, kind in zip(*(lambda r: (r.columns, map(str, r.types)))(con.sql(f"FROM {source}"))):
            if name in PARTITION:
                continue
            c = f'"{name}"'
            total = {
                "BIGINT": f"coalesce(sum({c}), 0)",
                "BOOLEAN": f"coalesce(sum({c}::INT), 0)",
                "VARCHAR": f"coalesce(sum(strlen({c})), 0)",
                "BIGINT[]": f"coalesce(sum(list_sum({c})), 0) + coalesce(sum(len({c})), 0)",
                "VARCHAR[]": f"coalesce(sum(list_sum(list_transform({c}, lambda x: strlen(x)))), 0)"
                f" + coalesce(sum(len({c})), 0)",
            }[kind]
            nulls, total = con.sql(f"SELECT count(*) - count({c}), {total} FROM {source}").fetchall()[0]
            columns[name] = [kind, nulls, str(total)]
        found[table] = [rows, columns]
    answers = []
    for query in queries:
        result = con.sql(query.replace("OUT/", f"{out}/"))
        answers.append(None if result is None else [list(map(str, row)) for row in result.fetchall()])
    return found, answers


def by_polars():
    found = {}
    for table in tables:
        frame = pl.scan_parquet(f"{out}/{table}/**/*.parquet", hive_partitioning=True).collect()
        columns = {}
        for series in frame.iter_columns():
            if series.name in PARTITION:
                continue
            kind, total = series.dtype, 0
            if kind == pl.Int64 or kind == pl.Boolean:
                # Python's integers do not overflow.
                total = sum(v for v in series.to_list() if v is not None)
                kind = "BIGINT" if kind == pl.Int64 else "BOOLEAN"
            elif kind == pl.String:
                kind, total = "VARCHAR", series.str.len_bytes().sum()
            elif kind == pl.List(pl.Int64):
                lists = [v for v in series.to_list() if v is not None]
                kind, total = "BIGINT[]", sum(map(sum, lists)) + sum(map(len, lists))
            elif kind == pl.List(pl.String):
                lists = [v for v in series.to_list() if v is not None]
                total = sum(len(t.encode()) for v in lists for t in v) + sum(map(len, lists))
                kind = "VARCHAR[]"
            columns[series.name] = [str(kind), series.null_count(), str(int(total or 0))]
        found[table] = [frame.height, columns]
    return found


duck, answers = by_duckdb()
print(json.dumps({"duckdb": duck, "polars": by_polars(), "answers": answers}))
