"""``python -m bench [NAME...]``: measures the goals of the project on this machine and prints a table of ratios."""

from __future__ import annotations

import compileall
import sys
from importlib import import_module

from bench.measure import ROOT

NAMES = (
    "start",
    "network",
    "stall",
    "keys",
    "save",
    "saves",
    "parse",
    "engine",
    "view",
    "compare",
    "call",
    "stream",
    "replay",
    "candidates",
    "batch",
    "tabs",
)


def main(names: list[str]) -> int:
    """Exit code 1 when a goal is missed."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"error: no benchmark '{unknown[0]}' (there are {', '.join(NAMES)})", file=sys.stderr)
        return 2
    for folder in ("workbench", "bench", "tests/engine", "tests/support"):
        compileall.compile_dir(ROOT / folder, quiet=2)
    print(f"{'goal':>4}  {'ours against theirs':66} {'ours':>10} {'theirs':>10}      {'ratio':>7}   goal", flush=True)
    good = True
    for name in names or NAMES:
        for line in import_module(f"bench.{name}").run():
            print(line, flush=True)
            good = good and line.good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
