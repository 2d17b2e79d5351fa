"""``python -m homenode``: ``sweep FILE`` is of this package; every other command is handed to ``homenode``."""

from __future__ import annotations

import os
import sys

from . import _command, errors
from .sweeps import command


def main() -> int:
    """Runs the command line."""
    if sys.argv[1:2] == ["sweep"]:
        return command.main(sys.argv[2:])
    try:
        path = _command.find()
    except errors.CommandMissing as e:
        print(f"homenode: {e}", file=sys.stderr)
        return 127
    os.execv(path, [str(path), *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
