"""Every key, once: bindings, footer, help, palette and the reference are made from this table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.tui.form_keys import FORM_CONTEXTS, FORM_KEYS
from workbench.tui.key import Key as Key
from workbench.tui.key_names import display as display
from workbench.tui.key_names import near, never_sent, table_name
from workbench.tui.message_keys import MESSAGE_CONTEXTS, MESSAGE_KEYS
from workbench.tui.review_keys import REVIEW_CONTEXTS, REVIEW_KEYS
from workbench.tui.room_keys import ROOM_CONTEXTS, ROOM_FOOTERS, ROOM_KEYS
from workbench.tui.run_keys import RUN_CONTEXTS, RUN_FOOTERS, RUN_KEYS
from workbench.tui.side_keys import SIDE_CONTEXTS, SIDE_KEYS

if TYPE_CHECKING:
    from textual.binding import BindingType

KEYS: tuple[Key, ...] = (
    Key("run.over", "n", "step('over')", "bench", "Go on to the next turn, and hold there", "Run", "next turn"),
    Key("run.into", "i", "step('into')", "bench", "Go on to the next stop at any depth, and hold there", "Run", "into"),
    Key("run.out", "o", "step('out')", "bench", "Go on to the end of this phase, and hold there", "Run", "out"),
    Key("run.continue", "c", "step('continue')", "bench", "Go on to the next breakpoint or the end", "Run", "continue"),
    Key("run.pause", "space", "pause", "bench", "Hold at the next stop; go on when held", "Run", "pause"),
    Key("run.start", "r", "start", "bench", "Start a new run of the file as it is now", "Run", "run"),
    Key("run.stop", "x", "stop", "bench", "Stop the run; a step or continuing goes on with it", "Run", "stop"),
    Key("run.answer", "a", "answer", "bench", "Answer the question that the run asks you", "Run", "answer"),
    Key(
        "run.breakpoint",
        "b",
        "breakpoint",
        "bench",
        "Set or clear a breakpoint at the selected phase or turn",
        "Run",
        "break",
    ),
    Key(
        "run.condition",
        "B",
        "breakpoint_prompt",
        "bench",
        "Set a breakpoint by phase, turn, tool or condition",
        "Run",
    ),
    Key("run.again", "R", "rerun", "bench", "Run the file again, keeping the answers of unchanged calls", "Run"),
    Key("run.edit", "E", "edit_held", "bench", "Edit what stands where the run is held", "Run", "edit here"),
    Key("run.feedback", "S", "feedback", "bench", "Say something to the running phase", "Run", "say"),
    Key("run.fork", "F", "fork", "bench", "A new run from before the selected call", "Run", "fork"),
    Key("run.freeze", "t", "freeze", "bench", "Freeze the run as a test", "Run", "freeze"),
    Key("view.previous", "left_square_bracket", "call(-1)", "bench", "Look at the call before", "Look", "earlier"),
    Key(
        "view.next", "right_square_bracket", "call(1)", "bench", "Look at the call after; the last one follows", "Look"
    ),
    Key(
        "view.why",
        "p",
        "detail('why')",
        "bench",
        "Why the entry is as it is, with the line that decided",
        "Look",
        "why",
    ),
    Key("view.wire", "w", "detail('wire')", "bench", "The request exactly as it goes over the wire", "Look", "wire"),
    Key("view.diff", "d", "compare", "bench", "Mark what differs from the call before, in this phase", "Look", "diff"),
    Key("view.strategies", "D", "strategies", "bench", "Compare two context strategies on this run", "Look", "compare"),
    Key(
        "view.candidates", "C", "candidates", "bench", "Candidates side by side: who won and why", "Look", "candidates"
    ),
    Key("view.full", "m", "full", "bench", "Show messages in full, or as they were sent", "Look", "full"),
    Key("view.dropped", "u", "unfold", "bench", "Unfold or fold what was dropped", "Look"),
    Key("view.find", "slash", "find", "bench", "Find in the pane with the focus", "Look", "find"),
    Key("view.again", "N,f3", "find_again", "bench", "Find the same text further down", "Look"),
    Key("view.before", "P,shift+f3", "find_again(-1)", "bench", "Find the same text further up", "Look"),
    Key("view.filter", "f", "filter", "bench", "Show only rows that hold a text", "Look", "filter"),
    Key("view.clear", "escape", "clear", "bench", "Show all rows again; else take the marks of a search away", "Look"),
    Key("view.copy", "y", "copy", "bench", "Copy the row or message to the clipboard", "Look", "copy"),
    Key("view.edit", "e", "edit", "bench", "Edit the file at this place", "Look", "edit"),
    Key("view.external", "f4", "edit(True)", "bench", "Open the file at this place in $EDITOR", "Look"),
    Key("pane.next", "tab", "pane(1)", "bench", "Go to the next pane", "Panes"),
    Key("pane.previous", "shift+tab", "pane(-1)", "bench", "Go to the pane before", "Panes"),
    Key("pane.zoom", "z", "zoom", "bench", "Give the pane the whole screen, or give it back", "Panes", "zoom"),
    Key("pane.narrower", "alt+left", "resize('width', -4)", "bench", "Make the tree narrower", "Panes"),
    Key("pane.wider", "alt+right", "resize('width', 4)", "bench", "Make the tree wider", "Panes"),
    Key("pane.higher", "alt+up", "resize('height', 2)", "bench", "Make the lower pane higher", "Panes"),
    Key("pane.lower", "alt+down", "resize('height', -2)", "bench", "Make the lower pane lower", "Panes"),
    Key("pane.jump", "ctrl+o", "jump", "bench", "Jump to a pane by its letter", "Panes"),
    Key("tab.log", "1", "tab('log')", "bench", "The log: what happened, line by line", "Panes"),
    Key("tab.problems", "2", "tab('problems')", "bench", "Problems of the file and of the run", "Panes"),
    Key("tab.state", "3", "tab('state')", "bench", "The state of the run", "Panes"),
    Key("tab.output", "4", "tab('output')", "bench", "What the run and its phases put out", "Panes"),
    Key("tab.events", "5", "tab('events')", "bench", "The journal: every event as it is stored", "Panes"),
    Key("list.down", "down,j", "down", "list", "One row down", "Move"),
    Key("list.up", "up,k", "up", "list", "One row up", "Move"),
    Key("list.page_down", "pagedown,ctrl+d", "page(1)", "list", "One page down", "Move"),
    Key("list.page_up", "pageup,ctrl+u", "page(-1)", "list", "One page up", "Move"),
    Key("list.first", "home,g", "first", "list", "To the first row", "Move"),
    Key("list.last", "end,G", "last", "list", "To the last row", "Move"),
    Key(
        "list.open",
        "enter",
        "open",
        "list",
        "Open the row: a message in full and as sent, a phase, an event",
        "Move",
        "open",
    ),
    Key("tree.fold", "left,h", "fold", "tree", "Fold the branch, or go to its parent", "Move"),
    Key("tree.unfold", "right,l", "unfold", "tree", "Unfold the branch, or go into it", "Move"),
    Key(
        "sheet.close",
        "escape,q",
        "close",
        "sheet",
        "Drop a filter or a search; else back to the Bench",
        "Sheet",
        "back",
    ),
    Key("sheet.find", "slash", "find", "sheet", "Find in the text", "Sheet", "find"),
    Key("sheet.again", "n", "find_again(1)", "sheet", "The next place", "Sheet", "next"),
    Key("sheet.before", "N", "find_again(-1)", "sheet", "The place before", "Sheet"),
    Key("sheet.filter", "f", "filter", "sheet", "Show only rows that hold a text", "Sheet", "filter"),
    Key("sheet.copy", "y", "copy", "sheet", "Copy the whole text, or the path of an image", "Sheet", "copy"),
    *MESSAGE_KEYS,
    *SIDE_KEYS,
    *REVIEW_KEYS,
    *ROOM_KEYS,
    *RUN_KEYS,
    *FORM_KEYS,
    Key(
        "borders.narrower",
        "alt+left",
        "resize('width', -4)",
        "borders",
        "The left side narrower: candidates, comparison",
        "Borders",
    ),
    Key("borders.wider", "alt+right", "resize('width', 4)", "borders", "The left side wider", "Borders"),
    Key(
        "borders.higher",
        "alt+up",
        "resize('height', 2)",
        "borders",
        "The lower pane higher: runs, home, candidates",
        "Borders",
    ),
    Key("borders.lower", "alt+down", "resize('height', -2)", "borders", "The lower pane lower", "Borders"),
    Key("dialog.close", "escape", "close", "dialog", "Close without doing anything", "Dialogs", "close"),
    Key("app.palette", "ctrl+p", "command_palette", "app", "Every command by name", "Workbench", "palette"),
    Key("app.help", "question_mark,f1", "help", "app", "Keys and signs", "Workbench", "help"),
    Key("app.theme", "f2", "next_theme", "app", "The next colour theme", "Workbench"),
    Key("app.interrupt", "ctrl+c", "interrupt", "app", "Copy selected text; else stop the run; else quit", "Workbench"),
    Key("app.suspend", "ctrl+z", "suspend_process", "app", "Back to the shell; fg returns", "Workbench"),
    Key("app.quit", "q", "leave", "app", "Quit; asks while a run is going", "Workbench", "quit"),
)
"""The order is that of the help; in the footer too, as far as there is room."""

CONTEXTS: dict[str, tuple[str, ...]] = {
    "app": ("bench", "tree", "list"),
    "bench": ("app", "tree", "list"),
    "tree": ("bench", "app", "list"),
    "list": ("bench", "app", "tree", "sheet", "compare", "message", "candidates", "sweep"),
    "sheet": ("list", "compare", "message", "candidates", "sweep"),
    "borders": ("app", "list", "tree", "sheet", "runs", "home", "compare", "candidates", "find"),
    **SIDE_CONTEXTS,
    **ROOM_CONTEXTS,
    **RUN_CONTEXTS,
    **FORM_CONTEXTS,
    **REVIEW_CONTEXTS,
    **MESSAGE_CONTEXTS,
}
"""Contexts whose keys work at the same time: a key may not mean two things in them."""

FOOTERS: dict[str, tuple[str, ...]] = {
    "idle": ("run.over", "run.start", "run.into", "run.breakpoint", "view.edit", "list.open", "view.find", "pane.zoom"),
    "held": (
        "run.over",
        "run.into",
        "run.out",
        "run.continue",
        "run.stop",
        "view.why",
        "view.wire",
        "view.diff",
        "view.full",
        "view.previous",
        "list.open",
        "view.find",
    ),
    "running": (
        "run.pause",
        "run.stop",
        "view.previous",
        "view.why",
        "view.wire",
        "view.diff",
        "view.full",
        "view.find",
    ),
    "asked": (
        "run.answer",
        "run.stop",
        "view.previous",
        "view.why",
        "view.wire",
        "view.diff",
        "view.full",
        "view.find",
    ),
    "unfinished": (
        "run.continue",
        "run.over",
        "run.start",
        "view.previous",
        "view.why",
        "view.wire",
        "view.diff",
        "list.open",
        "view.copy",
        "view.find",
    ),
    "done": (
        "run.start",
        "run.over",
        "run.freeze",
        "view.previous",
        "view.why",
        "view.wire",
        "view.diff",
        "view.full",
        "list.open",
        "view.copy",
        "view.find",
        "pane.zoom",
    ),
    **ROOM_FOOTERS,
    **RUN_FOOTERS,
}
"""What the footer offers in each situation, the most useful first; it shows as many as there is room for."""

ON_SHEETS = ("app.palette", "app.help", "app.theme", "app.interrupt", "app.suspend")
"""Commands of the app that work on a sheet, too: what lies below it has no keys while it is open."""

ALWAYS = ("app.palette", "app.help", "app.quit")
"""What the footer shows at its right end."""


def hints(ids: Iterable[str], table: Iterable[Key] = KEYS) -> tuple[tuple[str, str, str], ...]:
    """``(command, key, word)`` for a footer."""
    by_id = {key.id: key for key in table}
    return tuple((id, display(by_id[id].keys), by_id[id].short) for id in ids)


def bindings(context: str) -> list[BindingType]:
    """The bindings of one context, for a widget's ``BINDINGS``."""
    from textual.binding import Binding

    return [
        Binding(
            key.keys,
            key.action if key.context == context else f"app.{key.action}",
            key.short or key.help,
            show=bool(key.short),
            tooltip=key.help,
            id=key.id,
            priority=key.priority,
        )
        for key in KEYS
        if key.context == context or (context == "sheet" and key.id in ON_SHEETS)
    ]


def resolve(overrides: Mapping[str, str], table: Iterable[Key] = KEYS) -> tuple[tuple[Key, ...], tuple[str, ...]]:
    """The table with a user's keys, and what is wrong with them: an unknown id, no key, a key that no terminal sends,
    one key for two commands.

    Keys may be written as ``display`` shows them, and two commands may change keys. An override that clashes is left
    out, the later of two first, so that no command becomes unreachable.
    """
    table = tuple(table)
    known = {key.id for key in table}
    problems: list[str] = []
    wanted: dict[str, str] = {}
    for id, keys in overrides.items():
        names = [table_name(name.strip()) for name in keys.split(",") if name.strip()]
        if id not in known:
            guess = near(id, tuple(known))
            meant = f" (did you mean '{guess}'?)" if guess else ""
            problems.append(f"keys.{id}: there is no such command{meant}")
        elif not names:
            problems.append(f"keys.{id}: at least one key, as in f5 or ctrl+r")
        elif fault := next(filter(None, map(never_sent, names)), ""):
            problems.append(f"keys.{id}: {fault}")
        else:
            wanted[id] = ",".join(names)
    while True:
        current = tuple(replace(key, keys=wanted[key.id]) if key.id in wanted else key for key in table)
        found = ((id, clash) for id in reversed(wanted) if (clash := _clash(current, id)) is not None)
        id, clash = next(found, ("", None))
        if clash is None:
            return current, tuple(problems)
        problems.append(f"keys.{id}: '{wanted.pop(id)}' already means '{clash.help}' ({clash.id})")


def command_of(problem: str) -> str:
    """The command that a problem of ``resolve`` is about."""
    return problem.partition(":")[0].removeprefix("keys.")


def _clash(table: tuple[Key, ...], id: str) -> Key | None:
    """Another command that shares a key with this one where both work."""
    mine = next(key for key in table if key.id == id)
    wanted = {name.strip() for name in mine.keys.split(",")}
    for other in table:
        if other.id != id and _together(mine, other) and wanted & {name.strip() for name in other.keys.split(",")}:
            return other
    return None


def _together(a: Key, b: Key) -> bool:
    """Whether the keys of two commands work at the same time."""
    return any(x == y or _meet(x, y) for x in _where(a) for y in _where(b))


def _where(key: Key) -> tuple[str, ...]:
    return (key.context, "sheet") if key.id in ON_SHEETS else (key.context,)


def _meet(a: str, b: str) -> bool:
    """Whether the keys of two contexts work at the same time."""
    return a in CONTEXTS[b] or b in CONTEXTS[a]
