"""homenode in Python: explain programs, read recordings, run sweeps.

>>> import homenode
>>> rec = homenode.open("app.hnrec")                      # doctest: +SKIP
>>> rec.accesses.pandas().groupby("node")["count"].sum()  # doctest: +SKIP
>>> print(homenode.explain(["./app", "8192"]))            # doctest: +SKIP

==================================  ==========================================================
what                                where
==================================  ==========================================================
recordings as tables, pictures      :func:`open`, :class:`Recording`, :class:`Table`
the commands as functions           :func:`explain`, :func:`changed`, :func:`compare`, :func:`record`
many programs, machines, policies   :func:`sweep`
errors                              :mod:`homenode.errors`
a cell of C in a notebook           ``%load_ext homenode``, ``%%homenode``
==================================  ==========================================================

The package runs the command ``homenode``, which :data:`HOMENODE`, the folder of this Python's scripts or the ``PATH``
names. It needs nothing else; pyarrow, pandas, Polars, DuckDB and matplotlib are optional.
"""

from __future__ import annotations

from ._command import find as find_command
from ._command import version
from .commands import changed, compare, explain, machines, record
from .errors import (
    CannotRun,
    CommandMissing,
    ConditionHeld,
    Failed,
    HomenodeError,
    Killed,
    MissingPackage,
    NotFound,
    PartialResult,
    PartialWarning,
    ProgramFailed,
    UnknownSchema,
    UsageError,
)
from .magic import load_ipython_extension
from .recording import TABLES, Recording, Table, open
from .results import Change, Comparison, Effect, Explanation, Finding, Fix, Place, Recorded, Share, Variable
from .sweeps import Outcome, sweep

#: The release of this package, which is that of the command.
__version__ = "0.1.0"

__all__ = [
    "TABLES",
    "CannotRun",
    "Change",
    "CommandMissing",
    "Comparison",
    "ConditionHeld",
    "Effect",
    "Explanation",
    "Failed",
    "Finding",
    "Fix",
    "HomenodeError",
    "Killed",
    "MissingPackage",
    "NotFound",
    "Outcome",
    "PartialResult",
    "PartialWarning",
    "Place",
    "ProgramFailed",
    "Recorded",
    "Recording",
    "Share",
    "Table",
    "UnknownSchema",
    "UsageError",
    "Variable",
    "changed",
    "compare",
    "explain",
    "find_command",
    "load_ipython_extension",
    "machines",
    "open",
    "record",
    "sweep",
    "version",
]
