"""The command ``workbench``, and ``python -m workbench``: imports as little as can be before Ctrl-C ends it quietly."""

from __future__ import annotations

import os
import signal

_INTERRUPTED = 130
"""As the shell names the end by SIGINT; ``workbench.cli.errors.Exit`` is not loaded yet."""


def main() -> None:
    """Run the command line and exit. Interrupted while it still loads, it ends at once and says nothing."""
    # A KeyboardInterrupt would come out of whatever import is going on, as a traceback or as another error.
    mine = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # A shell may have told us to ignore it.
    if mine:
        signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    from workbench.cli.main import main as command  # after the signal, which may come while it is imported

    if mine:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command()


if __name__ == "__main__":
    main()
