"""Pictures: what they show, with legend, units and basis."""

import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import homenode  # noqa: E402
from homenode import plots  # noqa: E402


@pytest.fixture(autouse=True)
def closed():
    yield
    matplotlib.pyplot.close("all")


def words(figure):
    ax = figure.axes[0]
    legend = ax.get_legend()
    return ax.get_xlabel(), ax.get_ylabel(), legend.get_title().get_text(), [t.get_text() for t in legend.get_texts()]


def test_residency_shows_each_page_in_the_colour_of_its_home(rec, tmp_path):
    figure = rec.plot_residency(["grid", "next"])
    x, y, title, nodes = words(figure)
    assert "seconds (modelled clock)" in x and "4096 bytes" in y and title == "home node"
    # One thread touches all pages first: they live on one node.
    assert nodes == ["node 0"]
    drawn = figure.axes[0].collections[0]
    assert matplotlib.colors.to_hex(drawn.get_facecolor()[0]) == plots.COLOURS[0]
    pages = sum(row["pages"] for row in rec.sql("SELECT pages FROM residency r JOIN objects o USING (object) "
                "WHERE o.name IN ('grid', 'next')").pl().to_dicts())
    assert sum(path.get_extents().height for path in drawn.get_paths()) == pages
    figure.savefig(tmp_path / "residency.png")
    assert (tmp_path / "residency.png").stat().st_size > 5000


def test_residency_of_a_run_shows_several_objects(rec):
    labels = [t.get_text() for t in rec.plot_residency().axes[0].get_yticklabels()]
    assert any(label.startswith("grid (") for label in labels) and len(labels) <= plots.MOST_OBJECTS
    with pytest.raises(homenode.UsageError, match="no object nothing; there are .*grid"):
        rec.plot_residency(["nothing"])


def test_accesses_add_up_and_name_their_basis(rec):
    figure = rec.plot_accesses("grid")
    x, y, title, nodes = words(figure)
    assert y == "accesses (exact)" and "4096 bytes each" in x and title == "accessing node"
    assert nodes == ["node 0", "node 1"] and "% remote" in figure.axes[0].get_title()
    total = rec.sql("SELECT sum(\"count\") FROM accesses a JOIN objects o USING (object) WHERE o.name = 'grid'").fetchall()[0][0]
    assert sum(bar.get_height() for bar in figure.axes[0].patches) == pytest.approx(total)


def test_presence_is_not_drawn_as_a_count(sampled):
    rows = sampled.sql("SELECT object, bool_and(\"count\" IS NULL) FROM accesses WHERE object IS NOT NULL GROUP BY object").fetchall()
    number, presence = rows[0]
    label = words(sampled.plot_accesses(number))[1]
    assert (label == "sightings (presence: not a count)") == presence


def test_what_cannot_be_drawn_says_why(rec):
    with pytest.raises(homenode.UsageError, match="there is no object nothing; there are .*grid"):
        rec.plot_accesses("nothing")


def test_colours_are_told_apart_by_colour_blind_readers():
    """No two of the eight colours come near each other under simulated deuteranopia and protanopia."""
    # Viénot, Brettel and Mollon 1999: the matrices for linear RGB.
    views = {
        "deuteranopia": ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0)),
        "protanopia": ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0)),
    }
    for name, matrix in views.items():
        seen = []
        for colour in plots.COLOURS:
            linear = [c**2.2 for c in matplotlib.colors.to_rgb(colour)]
            seen.append([max(sum(m * c for m, c in zip(row, linear)), 0) ** (1 / 2.2) for row in matrix])
        for i, a in enumerate(seen):
            for j, b in enumerate(seen[:i]):
                far = sum((x - y) ** 2 for x, y in zip(a, b)) ** 0.5
                assert far > 0.08, f"{name}: {plots.COLOURS[i]} and {plots.COLOURS[j]}: {far:.2f}"
    styles = {plots.style(i) for i in range(32)}
    assert len(styles) == 32
