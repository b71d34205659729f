"""The command ``workbench``, and ``python -m workbench``: imports as little as can be before Ctrl-C ends it quietly."""

from __future__ import annotations

import atexit
import gc
import os
import signal

_INTERRUPTED = 130
"""As the shell names the end by SIGINT; ``workbench.cli.errors.Exit`` is not loaded yet."""
_COLLECTED_AFTER = 50_000
"""New objects until the garbage collector looks at them. With Python's 700 it takes a tenth of the time of a short
command: what imports make stays."""


def main() -> None:
    """Run the command line and exit. Interrupted while it still loads, or when it is over, it ends at once and says
    nothing."""
    gc.set_threshold(_COLLECTED_AFTER, 10, 10)
    # Python looks through everything once more before it ends, which takes 50 to 150 ms; the memory goes back anyway.
    atexit.register(gc.freeze)
    # A KeyboardInterrupt would come out of whatever import is going on, as a traceback or as another error.
    mine = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # A shell may have told us to ignore it.

    def end(*_: object) -> None:
        os._exit(_INTERRUPTED)

    if mine:
        signal.signal(signal.SIGINT, end)
    from workbench.cli.main import main as command  # after the signal, which may come while it is imported

    if mine:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command()
    finally:
        if mine:  # The same while Python waits for threads and takes itself apart.
            signal.signal(signal.SIGINT, end)


if __name__ == "__main__":
    main()
