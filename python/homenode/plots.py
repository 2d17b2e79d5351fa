"""Pictures of a recording, one figure each, by matplotlib.

Colours are those of Okabe and Ito, as in ``homenode view``: colour-blind readers tell them apart. From the ninth node on
they come again with a hatching. Every picture has a legend, and every axis a unit; an axis of counts names their basis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Set, Tuple, Union

from . import errors

if TYPE_CHECKING:
    from .recording import Recording

#: Okabe and Ito; the order of ``homenode view``.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442", "#8c8c8c")
#: Tells nodes with the same colour apart.
HATCHES = ("", "///", "...", "xxx")
#: Objects that a picture without a choice shows: those with most pages.
MOST_OBJECTS = 12
#: Blocks of pages that a histogram shows at most; more are put together.
MOST_BLOCKS = 256


def style(index: int) -> Tuple[str, str]:
    """Colour and hatching of the node with an index.

    >>> style(0), style(8)
    (('#0072b2', ''), ('#0072b2', '///'))
    """
    return COLOURS[index % len(COLOURS)], HATCHES[(index // len(COLOURS)) % len(HATCHES)]


def _axes(ax: Any, height: float) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise errors.optional("matplotlib", "plot") from None
    if ax is not None:
        return ax
    return plt.subplots(figsize=(9, height), layout="constrained")[1]


def _legend(ax: Any, nodes: Iterable[int], order: List[int], title: str) -> None:
    from matplotlib.patches import Patch

    def patch(node: int) -> Any:
        colour, hatch = style(order.index(node))
        return Patch(facecolor=colour, hatch=hatch, edgecolor="white" if hatch else colour, label=f"node {node}")

    # Beside the picture: it hides no page.
    ax.legend(handles=[patch(n) for n in sorted(nodes)], title=title, loc="upper left", bbox_to_anchor=(1.01, 1.0))


def _extent(rows: List[Dict[str, Any]], number: int) -> Tuple[int, int]:
    """The first page of an object that is told of, and the page behind the last one."""
    mine = [r for r in rows if r["object"] == number]
    return min((r["page"] for r in mine), default=0), max((r["page"] + r["pages"] for r in mine), default=0)


def _objects(rec: Recording) -> Dict[int, Dict[str, Any]]:
    return {o["object"]: o for o in rec.objects.rows()}


def _subtitle(rec: Recording) -> str:
    meta = rec.meta.rows()[0]
    policy = f", {meta['policy']}" if meta["policy"] else ""
    return f"{' '.join(meta['command'])[:60]} on {meta['machine']}{policy}"


def residency(rec: Recording, objects: Optional[List[str]] = None, ax: Any = None) -> Any:
    """Draws where pages lived: time from left to right, pages by object from bottom to top, colour = home node.

    Args:
        rec: the recording.
        objects: names of the objects to draw. Default: the :data:`MOST_OBJECTS` with most pages.
        ax: the axes to draw on. Default: those of a new figure.

    Returns:
        The figure.
    """
    known = _objects(rec)
    rows = [r for r in rec.residency.rows() if r["object"] is not None]
    if not rows:
        raise errors.UsageError(f"{rec.path} does not tell where pages lived: its table residency is empty")
    if objects is not None:
        names = {o["name"] for o in known.values()}
        unknown = [n for n in objects if n not in names]
        if unknown:
            raise errors.UsageError(f"there is no object {unknown[0]}; there are {', '.join(sorted(names))}")
        chosen = [n for n, o in known.items() if o["name"] in objects]
    else:
        extent = {number: _extent(rows, number) for number in {r["object"] for r in rows}}
        chosen = sorted(sorted(extent, key=lambda n: (extent[n][0] - extent[n][1], n))[:MOST_OBJECTS])
    times = {i["interval"]: (i["begin_ns"] / 1e9, i["end_ns"] / 1e9) for i in rec.intervals.rows()}
    order = sorted(n["node"] for n in rec.nodes.rows())
    meta = rec.meta.rows()[0]
    ax = _axes(ax, 2.0 + 0.35 * len(chosen))
    bars: Dict[int, List[Tuple[float, float, float, float]]] = {}
    base, ticks = 0, []
    for number in chosen:
        mine = [r for r in rows if r["object"] == number]
        low, high = _extent(mine, number)
        pages = high - low
        for r in mine:
            begin, end = times[r["interval"]][0], times[r["until"]][1]
            bars.setdefault(r["home"], []).append((begin, base + r["page"] - low, end - begin, r["pages"]))
        ticks.append((base + pages / 2, f"{known[number]['name']} ({pages} pages)"))
        base += pages
        ax.axhline(base, color="black", linewidth=0.5)
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    for home, boxes in sorted(bars.items()):
        colour, hatch = style(order.index(home))
        patches = [Rectangle((x, y), w, h) for x, y, w, h in boxes]
        # Without edges, which would hide the neighbours of thin runs of pages.
        style_of: Any = {"edgecolor": "white", "hatch": hatch} if hatch else {"edgecolor": "none"}
        ax.add_collection(PatchCollection(patches, facecolor=colour, linewidth=0, **style_of))
    ends = [t for pair in times.values() for t in pair]
    ax.set_xlim(min(ends), max(ends))
    ax.set_ylim(0, max(base, 1))
    ax.set_yticks([t for t, _ in ticks], [name for _, name in ticks])
    ax.set_xlabel(f"time in seconds ({meta['clock']} clock)")
    left_out = len({r["object"] for r in rows}) - len(chosen)
    ax.set_ylabel(f"pages of {meta['page_bytes']} bytes, by object" + (f"; {left_out} not shown" if left_out > 0 else ""))
    ax.set_title(f"Where pages lived: {_subtitle(rec)}", fontsize="medium")
    _legend(ax, bars, order, "home node")
    return ax.figure


def _label_of(bases: Set[Tuple[str, Optional[int]]]) -> str:
    """What the counts are worth, for the axis.

    >>> _label_of({("sampled", 101)})
    'accesses (sampled, one in 101)'
    """
    words = sorted(basis + (f", one in {one_in}" if one_in else "") for basis, one_in in bases)
    return f"accesses ({'; '.join(words)})"


def _number(rec: Recording, wanted: Union[str, int, None]) -> Tuple[int, Dict[str, Any]]:
    known = _objects(rec)
    if wanted is None:
        total: Dict[int, int] = {}
        for a in rec.accesses.rows(["object", "count", "seen"]):
            if a["object"] is not None:
                total[a["object"]] = total.get(a["object"], 0) + (a["count"] or a["seen"])
        if not total:
            raise errors.UsageError(f"{rec.path} tells of no accesses: its table accesses is empty")
        wanted = min(total, key=lambda n: (-total[n], n))
    found = [n for n, o in known.items() if wanted in (n, o["name"], o["id"])]
    if not found:
        names = ", ".join(sorted({o["name"] for o in known.values()}))
        raise errors.UsageError(f"there is no object {wanted}; there are {names}")
    if len(found) > 1 and not isinstance(wanted, int):
        ids = ", ".join(known[n]["id"] for n in found)
        raise errors.UsageError(f"{len(found)} objects are called {wanted}: give one of their ids: {ids}")
    return found[0], known[found[0]]


def accesses(rec: Recording, object: Union[str, int, None] = None, ax: Any = None) -> Any:
    """Draws which node accessed which pages of an object: a histogram, stacked by the accessing node.

    Args:
        rec: the recording.
        object: its name, its id or its number. Default: the object with most accesses.
        ax: the axes to draw on. Default: those of a new figure.

    Returns:
        The figure. Where the recording knows presence alone, the axis counts sightings and says so.
    """
    number, about = _number(rec, object)
    rows = rec.accesses.rows(where={"object": number})
    if not rows:
        raise errors.UsageError(f"nobody accessed {about['name']} in this recording")
    counted = [a for a in rows if a["count"] is not None]
    presence = not counted
    rows = rows if presence else counted
    order = sorted(n["node"] for n in rec.nodes.rows())
    meta = rec.meta.rows()[0]
    low, high = min(a["page"] for a in rows), max(a["page"] + a["pages"] for a in rows)
    # The blocks of the recording, or as many of them together as the picture can show.
    block = max(min(a["pages"] for a in rows), -(-(high - low) // MOST_BLOCKS))
    heights: Dict[int, List[float]] = {}
    local: Dict[bool, int] = {True: 0, False: 0}
    for a in rows:
        value = a["seen"] if presence else a["count"]
        local[a["node"] == a["home"]] += value
        mine = heights.setdefault(a["node"], [0.0] * (-(-(high - low) // block)))
        for bar in range((a["page"] - low) // block, (a["page"] + a["pages"] - 1 - low) // block + 1):
            begin, end = low + bar * block, low + (bar + 1) * block
            share = min(end, a["page"] + a["pages"]) - max(begin, a["page"])
            mine[bar] += value * share / a["pages"]
    ax = _axes(ax, 4.0)
    below = [0.0] * (-(-(high - low) // block))
    left = [low + i * block for i in range(len(below))]
    for node, mine in sorted(heights.items()):
        colour, hatch = style(order.index(node))
        edge = "white" if hatch else colour
        ax.bar(left, mine, width=block, bottom=below, align="edge", color=colour, hatch=hatch, edgecolor=edge, linewidth=0.2)
        below = [a + b for a, b in zip(below, mine)]
    ax.set_xlim(low, high)
    ax.set_ylim(bottom=0)
    ax.set_xlabel(f"page of {about['name']}, {meta['page_bytes']} bytes each, {block} a bar")
    if presence:
        ax.set_ylabel("sightings (presence: not a count)")
    else:
        ax.set_ylabel(_label_of({(a["basis"], a["one_in"]) for a in rows}))
    remote = 100 * local[False] / max(sum(local.values()), 1)
    ax.set_title(f"Who accessed {about['name']}: {_subtitle(rec)}; {remote:.0f} % remote", fontsize="medium")
    _legend(ax, heights, order, "accessing node")
    return ax.figure
