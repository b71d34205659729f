"""Opens and closes an index in a thread, and tells what Ctrl+Z meant before, meanwhile and after."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from workbench.store.index.index import Index
from workbench.store.store import Store


def main(folder: Path) -> dict[str, object]:
    heard: list[int] = []
    signal.signal(signal.SIGTSTP, lambda number, frame: heard.append(number))
    opened, done = threading.Event(), threading.Event()

    def work() -> None:
        with Index(Store(folder)) as index:
            index.catch_up()
            opened.set()
            done.wait()

    thread = threading.Thread(target=work)
    counts = []
    os.kill(os.getpid(), signal.SIGTSTP)
    counts.append(len(heard))
    thread.start()
    opened.wait()
    os.kill(os.getpid(), signal.SIGTSTP)
    counts.append(len(heard))
    done.set()
    thread.join()
    os.kill(os.getpid(), signal.SIGTSTP)
    counts.append(len(heard))
    return {"counts": counts, "engine": "chdb" in sys.modules}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
