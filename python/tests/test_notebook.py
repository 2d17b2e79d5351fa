"""The cell magic, and the notebook of examples/ from its first cell to its last."""

import pytest

import homenode
from conftest import MACHINE, ROOT, ROWS, SOURCE
from homenode import magic

NOTEBOOK = ROOT / "examples" / "explain.ipynb"


def test_a_cell_is_built_and_explained(tmp_path):
    answer = magic.explain_cell(f"-O1 --machine {MACHINE} --threads 4 --keep {tmp_path / 'kept'} -- {ROWS}", SOURCE.read_text())
    assert {v.name for v in answer.findings[0].variables} == {"grid", "next"}
    assert answer.findings[0].touched.file.endswith("cell.c")
    assert len(homenode.open(tmp_path / "kept" / "explained.hnrec").meta) == 1


def test_a_cell_that_does_not_compile_says_where():
    with pytest.raises(homenode.ProgramFailed, match="cell.c:1"):
        magic.explain_cell("", "int main(void) { return x; }")
    with pytest.raises(homenode.UsageError, match="what is --no-such-option"):
        magic.explain_cell("--no-such-option", "")


def test_the_extension_registers_the_magic():
    testing = pytest.importorskip("IPython.testing.globalipapp")
    shell = testing.start_ipython() or testing.get_ipython()
    shell.run_line_magic("load_ext", "homenode")
    answer = shell.run_cell_magic("homenode", f"--machine {MACHINE} --threads 4 --name found -- {ROWS}", SOURCE.read_text())
    assert shell.user_ns["found"] is answer and answer.findings


def test_the_notebook_runs(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    book = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells), "outputs are not checked in"
    client = nbclient.NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    text = "\n".join(str(output.get("data", {}).get("text/markdown", "")) for output in outputs)
    assert "grid" in text and "pragma omp parallel for" in text
    # Two pictures: with the semicolon each is shown once.
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    # The table of the sweep is the last.
    assert "stencil of the array grid" in str(outputs[-1].get("data"))
