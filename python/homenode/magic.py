"""The cell magic ``%%homenode``: a cell of C that is built, recorded and explained.

::

    %load_ext homenode

    %%homenode -O2 --machine 2s-xeon --threads 4 -- 8192
    int main(int argc, char **argv) { … }

Options: ``-O0`` … ``-O3``, ``-l`` and ``-D`` go to the compiler ``homenode-cc -g -fopenmp``. ``--machine``, ``--page``
and ``--threads`` go to :func:`homenode.explain`. What stands behind ``--`` goes to the program. ``--name NAME`` stores the
:class:`~homenode.results.Explanation` in a variable, ``--keep DIR`` keeps the recording as ``DIR/explained.hnrec``.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any, List, Tuple

from . import _command, commands, errors
from .results import Explanation

#: The name of the cell's file in findings.
SOURCE = "cell.c"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise errors.UsageError(f"{message}\n  help: {self.format_usage().strip()}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%%homenode", add_help=False, usage="%%%%homenode [-O2] [--machine M] [--threads N] [-- ARG...]")
    parser.add_argument("--machine")
    parser.add_argument("--page")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--name")
    parser.add_argument("--keep")
    return parser


def parse(line: str) -> Tuple[argparse.Namespace, List[str], List[str]]:
    """The options, the compiler's words and the program's words of a line.

    >>> options, compiler, program = parse("-O3 -lm --threads 4 -- 8192")
    >>> options.threads, compiler, program
    (4, ['-O3', '-lm'], ['8192'])
    """
    words = shlex.split(line)
    at = words.index("--") if "--" in words else len(words)
    options, compiler = _parser().parse_known_args(words[:at])
    wrong = [w for w in compiler if not w.startswith(("-O", "-l", "-D", "-f", "-m", "-std"))]
    if wrong:
        raise errors.UsageError(f"what is {wrong[0]}? The compiler takes -O, -l, -D, -f, -m and -std here")
    return options, compiler, words[at + 1 :]


def explain_cell(line: str, cell: str) -> Explanation:
    """Builds a cell of C, records it and explains it."""
    options, compiler, program = parse(line)
    with tempfile.TemporaryDirectory(prefix="homenode-cell-") as folder:
        source, binary = Path(folder) / SOURCE, Path(folder) / "cell"
        source.write_text(cell)
        libraries = [w for w in compiler if w.startswith("-l")]
        flags = [w for w in compiler if not w.startswith("-l")] or ["-O1"]
        command = [str(_command.find("homenode-cc")), "-g", "-fopenmp", *flags, SOURCE, "-o", str(binary), *libraries]
        built = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if built.returncode:
            raise errors.ProgramFailed(f"the cell does not compile:\n{built.stderr.rstrip()}", built.returncode, command)
        words = [str(binary), *program]
        return commands.explain(
            words, machine=options.machine, page=options.page, threads=options.threads, keep=options.keep
        )


def load_ipython_extension(ipython: Any) -> None:
    """Called by ``%load_ext homenode``."""

    def homenode(line: str, cell: str) -> Explanation:
        """Builds this cell of C, records it and explains it."""
        answer = explain_cell(line, cell)
        name = parse(line)[0].name
        if name:
            ipython.push({name: answer})
        return answer

    ipython.register_magic_function(homenode, "cell", "homenode")
