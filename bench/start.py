"""Goals 1 and 2: time and memory until the first frame, against an app of Textual that shows one line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from bench.measure import WORKBENCH, Line, Screen, alone, interleaved, workspace

BARE = """
from textual.app import App
from textual.widgets import Static
class Bare(App):
    def compose(self):
        yield Static("bare-and-ready")
Bare().run()
"""


def cascade(phases: int) -> str:
    """A file of so many phases of about fifteen lines."""
    lines = ["cascade_id: large", "phases:"]
    for number in range(phases):
        lines += [f"  - name: phase_{number:03}", "    instructions: |"]
        lines += [f"      Line {line} of what phase {number} is asked to do." for line in range(8)]
        lines += ["    tackle: [read_file, search_files]", "    rules: {max_turns: 4}"]
        lines += [f"    context: {{from: [phase_{number - 1:03}]}}"] if number else []
        lines += [f"    handoffs: [phase_{number + 1:03}]" if number + 1 < phases else "    handoffs: []"]
    return "\n".join(lines) + "\n"


def pipeline(nodes: int) -> str:
    """A pipeline of so many nodes, each with a prompt of eight lines."""
    lines = ["digraph large {", "  start [shape=Mdiamond]", "  done [shape=Msquare]"]
    for number in range(nodes):
        prompt = "\n".join(f"Line {line} of what phase {number} is asked to do." for line in range(8))
        lines.append(f'  phase_{number:03} [prompt="{prompt}", workbench.tools="read_file, search_files"]')
    lines.append("  start -> " + " -> ".join(f"phase_{number:03}" for number in range(nodes)) + " -> done")
    return "\n".join([*lines, "}"])


def run(rounds: int = 5) -> Iterator[Line]:
    with workspace() as folder:
        (folder / "small.yaml").write_text(cascade(5))
        (folder / "large.yaml").write_text(cascade(100))
        (folder / "large.dot").write_text(pipeline(100))
        megabytes: dict[str, float] = {}

        def first(name: str, command: list[str], text: bytes) -> Callable[[], float]:
            def measure() -> float:
                with Screen(command, folder, alone(folder)) as screen:
                    took = screen.until(text) - screen.began
                    megabytes[name] = screen.memory
                    return took

            return measure

        bare, small, large, graph = interleaved(
            rounds,
            first("bare", [sys.executable, "-c", BARE], b"bare-and-ready"),
            first("small", [*WORKBENCH, "open", "small.yaml"], b"cascade workbench"),
            first("large", [*WORKBENCH, "open", "large.yaml"], b"phase_010"),
            first("graph", [*WORKBENCH, "open", "large.dot"], b"phase_010"),
        )
    yield Line("1", "first frame of open, bare Textual app", small * 1e3, bare * 1e3, "ms", 1.8)
    yield Line("1", "the same with a tree of 100 phases shown", large * 1e3, bare * 1e3, "ms", 2.3)
    yield Line("1", "the same with a pipeline of 100 nodes", graph * 1e3, bare * 1e3, "ms", 2.3)
    yield Line("2", "memory at the first frame", megabytes["small"], megabytes["bare"], "MB", 2.0)
