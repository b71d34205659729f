"""Owns the index until its input ends, and answers lines: a statement, or ``crash``."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from workbench.store.index.index import Index
from workbench.store.store import Store


def main(folder: Path) -> None:
    with Index(Store(folder)) as index:
        print("open", flush=True)
        for line in sys.stdin:
            if line.strip() == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            index.catch_up()
            print(index.sql(line).one(), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
