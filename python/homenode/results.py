"""What the commands answer, as dataclasses.

Their fields have the names of the commands' ``--json``. Times are nanoseconds on the clock of the recording, sizes are
bytes, shares are percent. :attr:`Explanation.json` and :attr:`Comparison.json` hold the whole object as it came.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from . import errors
from ._decode import decode


@dataclass(frozen=True)
class Place:
    """A place in the source. What is not known is ``None``."""

    file: Optional[str] = None
    line: Optional[int] = None
    function: Optional[str] = None

    def __str__(self) -> str:
        """``file.c:12``, or what is known of it.

        >>> str(Place("src/grid.c", 12, "main"))
        'grid.c:12'
        """
        if self.file is None:
            return self.function or "?"
        name = self.file.rsplit("/", 1)[-1]
        return name if self.line is None else f"{name}:{self.line}"


@dataclass(frozen=True)
class Amount:
    """A number of accesses with its basis: exact, emulated, sampled or presence. Presence has no count."""

    seen: int
    count: Optional[int] = None
    basis: Optional[str] = None
    one_in: Optional[int] = None


@dataclass(frozen=True)
class Share:
    """A part of a whole. ``of`` says what both count."""

    part: int
    whole: int
    percent: Optional[float]
    of: str
    basis: Optional[str] = None
    one_in: Optional[int] = None


@dataclass(frozen=True)
class Evidence:
    """What findings rest on."""

    kind: str
    basis: Optional[str]
    text: str


@dataclass(frozen=True)
class Remark:
    """A warning, or the reason why there is no finding: a word for programs and a sentence for people."""

    kind: str
    text: str


@dataclass(frozen=True)
class Variable:
    """A variable, or the allocations of one place of the source."""

    id: str
    name: str
    allocated: Place
    bytes: int
    allocations: int


@dataclass(frozen=True)
class Use:
    """A region of the source that uses the variables of a finding."""

    place: Place
    accesses: Amount


@dataclass(frozen=True)
class Effect:
    """What a fix brings. ``basis`` is ``simulated``, or ``bound`` where the fix brings at most this."""

    basis: str
    before_ns: int
    after_ns: int
    change_range: Optional[Tuple[float, float]]
    remote_before: float
    remote_after: float

    @property
    def change(self) -> float:
        """Change of the time in percent: negative where the fix saves time.

        >>> Effect("simulated", 200, 150, None, 50.0, 0.0).change
        -25.0
        """
        return (self.after_ns / self.before_ns - 1) * 100 if self.before_ns else 0.0


@dataclass(frozen=True)
class Fix:
    """What to do. ``effect`` is ``None`` where nothing was simulated."""

    kind: str
    text: str
    at: Optional[Place] = None
    effect: Optional[Effect] = None


@dataclass(frozen=True)
class Finding:
    """A fault, the code that causes it, and what to do about it, best first."""

    variables: Tuple[Variable, ...]
    pattern: str
    touched: Place
    touched_by: int
    used: Tuple[Use, ...]
    users: int
    remote: Share
    fixes: Tuple[Fix, ...]

    @property
    def names(self) -> str:
        """The names of the variables."""
        return ", ".join(v.name for v in self.variables)


@dataclass(frozen=True)
class Explanation:
    """What is wrong with a program's memory, and what to change."""

    command: Tuple[str, ...]
    evidence: Evidence
    machine: str
    nodes: int
    page_bytes: int
    threads: int
    timed_ns: int
    time_ns: int
    remote: Share
    warnings: Tuple[Remark, ...]
    findings: Tuple[Finding, ...]
    whole: Tuple[Fix, ...]
    notes: Tuple[str, ...]
    missing: Tuple[str, ...]
    rounds: Optional[int] = None
    rounds_simulated: Optional[int] = None
    no_finding: Optional[Remark] = None
    together: Optional[Effect] = None
    #: The object as the command printed it.
    json: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, found: Dict[str, Any]) -> Explanation:
        """From the JSON of ``homenode explain``."""
        return decode(cls, {**found, "json": found})

    @property
    def partial(self) -> bool:
        """Whether the recording is not whole; :attr:`missing` says what it lacks."""
        return bool(self.missing)

    def __str__(self) -> str:
        return "\n".join(self._lines("", ""))

    def _repr_markdown_(self) -> str:
        return "\n".join(self._lines("**", "`"))

    def _lines(self, strong: str, code: str) -> Iterator[str]:
        machine = f"{self.machine}, {self.nodes} nodes"
        if self.no_finding is not None:
            yield f"{strong}{self.no_finding.text}{strong}"
        else:
            worst = self.findings[0]
            yield f"{strong}{worst.names}: {worst.pattern.replace('-', ' ')}{strong}"
        percent = "no accesses" if self.remote.percent is None else f"{self.remote.percent:.0f} % remote"
        yield ""
        yield f"{percent} on {machine}; evidence: {self.evidence.text}"
        for warning in self.warnings:
            yield ""
            yield f"! {warning.text}"
        for finding in self.findings:
            yield ""
            yield f"{strong}{finding.names}{strong} first touched at {finding.touched}, used by {finding.users} nodes"
            yield ""
            for fix in finding.fixes:
                yield f"- {code}{fix.text}{code}" + _effect(fix.effect)
        if self.findings and self.whole:
            yield ""
            yield "Without a change of the source:"
            yield ""
            for fix in self.whole:
                yield f"- {code}{fix.text}{code}" + _effect(fix.effect)
        for sentence in self.missing:
            yield ""
            yield f"! {sentence}"


def _effect(effect: Optional[Effect]) -> str:
    if effect is None:
        return ""
    least = "at best " if effect.basis == "bound" else ""
    return (
        f": {least}{effect.change:+.0f} % time, remote {effect.remote_before:.0f} → {effect.remote_after:.0f} %"
        f" ({effect.basis})"
    )


@dataclass(frozen=True)
class Times:
    """The time of both programs of a change, for a round or the whole run."""

    per: str
    before_ns: float
    after_ns: float
    change: float


@dataclass(frozen=True)
class Left:
    """A finding that both programs of a change have."""

    before: Finding
    after: Finding


@dataclass(frozen=True)
class Change:
    """What a change of a program brought."""

    machine: str
    gone: Tuple[Finding, ...]
    new: Tuple[Finding, ...]
    left: Tuple[Left, ...]
    unlike: Tuple[str, ...]
    before: Explanation
    after: Explanation
    time: Optional[Times] = None
    remote_before: Optional[float] = None
    remote_after: Optional[float] = None
    #: The object as the command printed it.
    json: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, found: Dict[str, Any]) -> Change:
        """From the JSON of ``homenode explain --against``."""
        return decode(cls, {**found, "json": found})

    @property
    def partial(self) -> bool:
        """Whether one of the recordings is not whole."""
        return self.before.partial or self.after.partial

    def __str__(self) -> str:
        parts = [f"{len(f)} {name}" for f, name in ((self.gone, "gone"), (self.new, "new"), (self.left, "left"))]
        time = "" if self.time is None else f"{self.time.change:+.0f} % time, "
        return f"{time}findings: {', '.join(parts)}"


@dataclass(frozen=True)
class Comparison:
    """A table of placement schemes: a row for each machine and scheme.

    A cell without a value is ``None``, and :meth:`why` says why.
    """

    #: What is true of all rows: ``program``, ``recording``, ``threads``, ``machine``.
    facts: Mapping[str, Any]
    #: The rows, by the keys of :attr:`units`.
    rows: Tuple[Mapping[str, Any], ...]
    #: The unit of each column; ``None`` where it has none.
    units: Mapping[str, Optional[str]]
    #: What a reader should know, a sentence each.
    notes: Tuple[str, ...]
    #: What makes the result partial or doubtful, a sentence each.
    warnings: Tuple[str, ...]
    #: Whether rows are missing or the recording is not whole.
    partial: bool
    #: The object as the command printed it.
    json: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, found: Dict[str, Any], partial: bool = False) -> Comparison:
        """From the JSON of ``homenode compare``."""
        return cls(
            facts=found["facts"],
            rows=tuple(found["rows"]),
            units={c["key"]: c.get("unit") for c in found["columns"]},
            notes=tuple(found["notes"]),
            warnings=tuple(found.get("warnings", ())),
            partial=partial,
            json=found,
        )

    def why(self, row: int, column: str) -> Optional[str]:
        """Why a cell has no value; ``None`` where it has one."""
        missing: List[Dict[str, Any]] = self.json.get("missing", [])
        return next((m["why"] for m in missing if m["row"] == row and m["column"] == column), None)

    def row(self, scheme: str, machine: Optional[str] = None) -> Mapping[str, Any]:
        """The row of a scheme, on a machine where there are several."""
        found = [r for r in self.rows if r["scheme"] == scheme and (machine is None or r.get("machine") == machine)]
        if len(found) != 1:
            names = ", ".join(dict.fromkeys(str(r["scheme"]) for r in self.rows))
            raise KeyError(f"{len(found)} rows are of {scheme}" + (f" on {machine}" if machine else "") + f"; {names}")
        return found[0]

    def pandas(self) -> Any:
        """The rows as a pandas ``DataFrame``."""
        try:
            import pandas
        except ImportError:
            raise errors.optional("pandas", "pandas") from None
        return pandas.DataFrame(list(self.rows), columns=list(self.units))

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        head = [k + (f" ({u})" if u else "") for k, u in self.units.items()]
        body = [["" if r[k] is None else f"{r[k]:.6g}" if isinstance(r[k], float) else str(r[k]) for k in self.units]
                for r in self.rows]
        keep = [i for i in range(len(head)) if any(line[i] for line in body)]
        lines = [[line[i] for i in keep] for line in [head, *body]]
        widths = [max(len(line[i]) for line in lines) for i in range(len(keep))]
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(line, widths)).rstrip() for line in lines)


@dataclass(frozen=True)
class Recorded:
    """A program that was recorded."""

    #: The recording.
    path: Path
    #: The exit status of the program; 128 + n where signal n ended it.
    status: int
    #: What the program wrote to stdout, and what both wrote to stderr. Empty where they were passed
    #: through.
    stdout: str
    stderr: str
    #: What homenode reports of the recording.
    report: str
