"""The keys of the runs screen and of the home screen. A part of the one table in ``keys.py``."""

from __future__ import annotations

from workbench.tui.key import Key

RUN_KEYS: tuple[Key, ...] = (
    Key("app.runs", "L", "runs", "app", "All stored runs: find, compare, fork, go on", "Workbench", "runs"),
    Key("app.home", "H", "home", "app", "The cascades and runs of this folder", "Workbench", "home"),
    Key("runs.filter", "f,slash", "filter", "runs", "Filter: status:failed tokens>8000 text:word", "Runs", "filter"),
    Key("runs.sort", "s", "sort", "runs", "Sort by time, cost, tokens, seconds", "Runs", "sort"),
    Key("runs.mark", "space", "mark", "runs", "Mark the run for a comparison", "Runs", "mark"),
    Key(
        "runs.compare", "D", "compare", "runs", "Compare two marked runs, or the marked one and this", "Runs", "compare"
    ),
    Key("runs.resume", "c", "go_on", "runs", "Go on where the run stopped", "Runs", "go on"),
    Key("runs.fork", "F", "fork", "runs", "A new run from a place of this one", "Runs", "fork"),
    Key("runs.freeze", "t", "freeze", "runs", "Freeze the run as a test", "Runs", "freeze"),
    Key("runs.export", "X", "export", "runs", "Write the run to a file for other tools", "Runs", "export"),
    Key("runs.copy", "y", "copy", "runs", "Copy the run's session id", "Runs", "copy"),
    Key("runs.delete", "delete", "delete", "runs", "Delete the run for ever, after a question", "Runs", "delete"),
    Key("runs.close", "escape,q", "close", "runs", "Drop the filter, then back to where you came from", "Runs", "back"),
    Key("home.next", "tab", "pane(1)", "home", "From the cascades to the runs and back", "Home", "other list"),
    Key("home.previous", "shift+tab", "pane(-1)", "home", "The same, the other way", "Home"),
    Key("home.demo", "d", "demo", "home", "Copy the examples to a new folder and open the tour", "Home", "demo"),
    Key("home.look", "r", "look", "home", "Look at the folder again", "Home", "look again"),
    Key(
        "home.close",
        "escape",
        "close",
        "home",
        "Drop a filter or a search; else back to the Bench, where a cascade is open",
        "Home",
    ),
)

RUN_CONTEXTS: dict[str, tuple[str, ...]] = {
    "runs": ("tree", "list"),
    "home": ("app", "list"),
}
"""For ``CONTEXTS``."""

RUN_FOOTERS: dict[str, tuple[str, ...]] = {
    "runs": (
        "list.open",
        "runs.filter",
        "runs.resume",
        "runs.fork",
        "runs.mark",
        "runs.compare",
        "runs.sort",
        "runs.freeze",
        "runs.export",
        "runs.copy",
        "runs.delete",
    ),
    "home": ("list.open", "home.next", "find.filter", "app.runs", "app.snapshots", "home.demo", "home.look"),
}
"""For ``FOOTERS``."""
