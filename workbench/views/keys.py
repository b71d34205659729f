"""Every key, once: bindings, footer, help, palette and the reference are made from this table."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from workbench.language.nearest import nearest


class Key(Struct, frozen=True):
    """One command. ``context`` is where its keys work; ``short`` is its word in the footer, empty for none."""

    id: str
    keys: str
    """Comma separated, in Textual's names."""
    action: str
    context: str
    help: str
    group: str
    short: str = ""
    priority: bool = False
    """Whether the keys work before the widget with the focus sees them: for keys that a text area has a use for."""


SHOWN = {
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "slash": "/",
    "comma": ",",
    "number_sign": "#",
    "quotation_mark": '"',
    "asterisk": "*",
    "plus": "+",
    "minus": "-",
    "underscore": "_",
    "question_mark": "?",
    "exclamation_mark": "!",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "escape": "esc",
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
}
"""Names of keys as shown, if that is shorter."""

_ALSO = {"ctrl+m": "enter", "ctrl+i": "tab", "ctrl+h": "backspace", "ctrl+left_square_bracket": "escape"}
"""Keys that terminals have sent as others since there were terminals."""
_MODIFIERS = ("ctrl", "alt", "shift", "super", "hyper", "meta")
_OTHER_WORDS = {
    "control": "ctrl",
    "option": "alt",
    "cmd": "super",
    "command": "super",
    "return": "enter",
    "del": "delete",
    "ins": "insert",
    "spacebar": "space",
    "page_down": "pagedown",
    "page_up": "pageup",
}
"""The names that other programs give them."""
_SYMBOLS = {"solidus": "slash", "reverse_solidus": "backslash", "commercial_at": "at", "hyphen_minus": "minus"} | {
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""Names of characters that Textual shortens."""
_WORDS = (
    *("escape", "enter", "tab", "space", "backspace", "delete", "insert", "home", "end", "pageup", "pagedown"),
    *("left", "right", "up", "down"),
    *(f"f{number}" for number in range(1, 25)),
)


def display(keys: str) -> str:
    """Keys for people: ``ctrl+p`` as ``^p``, ``slash`` as ``/``; the first of several."""
    *modifiers, name = _parts(keys.split(",")[0].strip())
    prefix = "".join("^" if modifier == "ctrl" else f"{modifier}+" for modifier in modifiers)
    return prefix + SHOWN.get(name, name)


def displayed(keys: str) -> str:
    """All of several keys as people know them: ``[``, ``^p``, with commas between."""
    return ", ".join(display(key) for key in keys.split(",") if key.strip())


def table_name(key: str) -> str:
    """A key by its name in the table, however it is written: ``^p``, ``pgdn``, ``!``."""
    if len(key) > 1 and key.startswith("^"):
        key = f"ctrl+{key[1:]}"
    if key == "ctrl+@":  # Textual's own name of what most terminals send for ctrl+space.
        return key
    *modifiers, name = _parts(key)
    written = {shown: known for known, shown in SHOWN.items()}
    return "+".join((*modifiers, written.get(name, _of_character(name) if len(name) == 1 else name)))


def never_sent(key: str) -> str:
    """Returns why a key of the table's names can never arrive, with the nearest that can; empty for one that can."""
    if key in _ALSO:
        return f"most terminals send {_ALSO[key]} for '{key}'"
    *modifiers, name = _parts(key)
    wrong = [modifier for modifier in modifiers if modifier not in _MODIFIERS]
    capital = len(name) == 1 and name.isupper() and bool(modifiers)
    alone = modifiers == ["shift"] and len(name) == 1
    if not wrong and not capital and not alone and (len(name) == 1 or name in _known()):
        return ""
    guess = _guess(modifiers, name)
    return f"there is no key '{key}'" + (f" (did you mean '{guess}'?)" if guess else "")


def _guess(modifiers: list[str], name: str) -> str:
    meant = [near(modifier, _MODIFIERS) for modifier in modifiers]
    if len(name) == 1:
        if name.isupper():
            meant.append("shift")
        base = name.lower()
        if set(meant) == {"shift"}:
            return base.upper()
    else:
        base = near(name, _known())
    ordered = [modifier for modifier in _MODIFIERS if modifier in meant]
    return "+".join((*ordered, base)) if base and all(meant) else ""


def near(word: str, known: tuple[str, ...]) -> str:
    """The known word that was probably meant, or empty."""
    low = word.lower()
    return low if low in known else _OTHER_WORDS.get(low, "") or nearest(low, known)


def _parts(key: str) -> list[str]:
    """Modifiers and the key itself, which may be a plus."""
    return [*filter(None, key[:-1].split("+")), "+"] if key.endswith("+") else key.split("+")


def _of_character(character: str) -> str:
    """Returns Textual's name for the key of a character: letters and digits by themselves, others by their Unicode
    name."""
    if character.isalnum():
        return character
    name = unicodedata.name(character, character).lower().replace("-", "_").replace(" ", "_")
    return _SYMBOLS.get(name, name)


@cache
def _known() -> tuple[str, ...]:
    """Words that may stand for a key."""
    printed = (_of_character(chr(code)) for code in range(0x21, 0x180) if chr(code).isprintable())
    return (*_WORDS, *(name for name in printed if len(name) > 1))


_NAMED = re.compile(r"\{([a-z_]+(?:\.[a-z_]+)?)\}")
_bound: dict[str, str] = {}
"""The name of each command's key; filled when it is first needed, and by ``take_keys``."""


def take_keys(table: Iterable[Key]) -> None:
    """The keys that sentences name from now on: those of the app that runs in this process."""
    for key in table:
        _bound[key.id] = display(key.keys)


def told(sentence: str, **values: str) -> str:
    """``{run.start} makes one`` with the key of that command, and ``{name}`` with a value, which is taken as it is.

    Raises KeyError for what is neither.
    """
    if not _bound:
        take_keys(KEYS)
    known: Mapping[str, str] = {**_bound, **values} if values else _bound
    return _NAMED.sub(lambda found: known[found[1]], sentence)


_BEFORE_TEXT = {
    *("editor.complete", "editor.rename", "editor.find", "editor.pane"),
    *("sql.ask", "sql.complete", "sql.earlier", "sql.later", "sql.pane", "sql.keep", "sql.save"),
    *("edit.save", "edit.external", "edit.pane"),
    *("note.save", "form.next", "form.previous", "dialog.interrupt"),
}
"""Commands whose keys work before the text area or field with the focus sees them."""

_NEXT, _PREVIOUS = "right_square_bracket", "left_square_bracket"


def _keys(context: str, group: str, *rows: tuple[str, ...]) -> tuple[Key, ...]:
    """Keys of one context and group from rows of id, keys, action, help and, if the footer offers the key, its word."""
    return tuple(
        Key(id, keys, action, context, help, group, "".join(short), id in _BEFORE_TEXT)
        for id, keys, action, help, *short in rows
    )


KEYS: tuple[Key, ...] = (
    *_keys(
        "bench",
        "Run",
        ("run.over", "n,f10", "step('over')", "Step to the next call; in a graph to the next node or task", "step"),
        (
            "run.into",
            "i,f11",
            "step('into')",
            "Step to the next stop at any depth: into turns, branches, children",
            "into",
        ),
        ("run.out", "o", "out", "Step out of this phase; from a nested run, look at its caller", "out"),
        ("run.step_out", "shift+f11,f23", "step('out')", "Step to the end of this phase"),
        ("run.continue", "c,f5", "step('continue')", "Continue to the next breakpoint or the end", "continue"),
        ("run.pause", "space", "pause", "Pause at the next stop; continue a paused run", "pause"),
        ("run.start", "r", "start", "Start a new run of the file as it is now", "run"),
        ("run.inputs", "I", "inputs", "Change the inputs of the next run, and save them", "inputs"),
        ("run.stop", "x", "stop", "Stop the run; it can be resumed", "stop"),
        ("run.answer", "a", "answer", "Answer the question that the run asks you", "answer"),
        (
            "run.breakpoint",
            "f9",
            "breakpoint",
            "Set or clear a breakpoint at the selected phase or turn at once",
            "break",
        ),
        (
            "run.condition",
            "b,B",
            "breakpoint_prompt",
            "Set or clear a breakpoint: here, or by phase, turn, edge, outcome, tool, condition",
            "break",
        ),
        ("run.breakpoints", "s", "breakpoints", "List the breakpoints: edit, disable or delete them", "breakpoints"),
        ("run.again", "R", "rerun", "Run the file again, keeping the answers of unchanged calls", "re-run"),
        ("run.edit", "E", "edit_held", "Edit the request, call or result where the run is paused", "edit"),
        ("run.feedback", "S", "feedback", "Send feedback to the running phase", "say"),
        ("run.fork", "F", "fork", "A new run from before the selected call", "fork"),
        ("run.freeze", "t", "freeze", "Freeze the run as a test", "freeze"),
    ),
    *_keys(
        "found",
        "Look",
        ("found.next", "n", "match(1)", "The next match, while a search is marked", "next match"),
        ("found.previous", "N", "match(-1)", "The previous match", "previous"),
    ),
    *_keys(
        "bench",
        "Look",
        ("view.flow", "v", "flow", "The flow: the graph of phases, with the walk on it", "flow"),
        ("view.previous", _PREVIOUS, "call(-1)", "Show the previous call", "previous call"),
        ("view.next", _NEXT, "call(1)", "Show the next call; the last one follows the run", "next call"),
        ("view.why", "p", "detail('why')", "Why the entry is as it is, with the line that decided", "why"),
        ("view.ways", "W", "detail('ways')", "Why this edge was taken, and the others were not", "why edge"),
        ("view.wire", "w", "detail('wire')", "The request on the wire as a JSON tree, then raw", "wire"),
        ("view.diff", "d", "compare", "Mark what differs from the previous call of this phase", "diff"),
        ("view.strategies", "D", "strategies", "Compare two context strategies on this run", "compare"),
        ("view.candidates", "C", "candidates", "Candidates side by side: who won and why", "candidates"),
        ("view.full", "m", "full", "Messages in full, or as sent; Markdown drawn, or raw", "full"),
        ("view.dropped", "u", "unfold", "Unfold or fold what was dropped"),
        ("view.find", "slash", "find", "Find in the pane with the focus", "find"),
        ("view.again", "f3", "find_again", "Find the same text further down"),
        ("view.before", "shift+f3,f15", "find_again(-1)", "Find the same text further up"),
        ("view.filter", "f", "filter", "Show only rows with a text", "filter"),
        ("view.clear", "escape", "clear", "Clear filter or search; else close zoom, why or wire"),
        ("view.copy", "y", "copy", "Copy the row or message to the clipboard", "copy"),
        ("view.edit", "e", "edit", "Edit the file at this place", "edit"),
        ("view.external", "f4", "edit(True)", "Open the file at this place in $EDITOR"),
    ),
    *_keys(
        "bench",
        "Panes",
        ("pane.next", "tab", "pane(1)", "Go to the next pane"),
        ("pane.previous", "shift+tab", "pane(-1)", "Go to the previous pane"),
        ("pane.zoom", "z", "zoom", "Give the pane the whole screen, or give it back", "zoom"),
        ("pane.narrower", "alt+left", "resize('width', -4)", "Make the tree narrower"),
        ("pane.wider", "alt+right", "resize('width', 4)", "Make the tree wider"),
        ("pane.higher", "alt+up", "resize('height', 2)", "Make the lower pane higher"),
        ("pane.lower", "alt+down", "resize('height', -2)", "Make the lower pane lower"),
        ("pane.jump", "ctrl+o", "jump", "Jump to a pane by its letter"),
        ("tabs.next", "right_curly_bracket", "show_tab(1)", "Show the next open run", "next run"),
        ("tabs.previous", "left_curly_bracket", "show_tab(-1)", "Show the previous open run"),
        ("tabs.close", "X", "close_tab", "Close the tab; asks while its run is active", "close"),
        ("tab.log", "1", "tab('log')", "The log: what happened, line by line"),
        ("tab.problems", "2", "tab('problems')", "Problems of the file and of the run"),
        ("tab.state", "3", "tab('state')", "The state of the run"),
        ("tab.output", "4", "tab('output')", "The output of the run and its phases"),
        ("tab.events", "5", "tab('events')", "The journal: every event as it is stored"),
        ("tab.timeline", "6", "tab('timeline')", "The timeline: calls, tools and pauses as bars"),
        ("tab.watched", "7", "watched", "Of a watched program: what-if costs, and what it prints"),
    ),
    *_keys(
        "list",
        "Move",
        ("list.down", "down,j", "down", "One row down"),
        ("list.up", "up,k", "up", "One row up"),
        ("list.page_down", "pagedown,ctrl+d", "page(1)", "One page down"),
        ("list.page_up", "pageup,ctrl+u", "page(-1)", "One page up"),
        ("list.first", "home,g", "first", "To the first row"),
        ("list.last", "end,G", "last", "To the last row"),
        ("list.open", "enter", "open", "Open the row: a message in full and as sent, a phase, an event", "open"),
    ),
    *_keys(
        "tree",
        "Move",
        ("tree.fold", "left,h", "fold", "Fold the branch, or go to its parent", "fold"),
        ("tree.unfold", "right,l", "unfold", "Unfold the branch, or go into it", "unfold"),
    ),
    *_keys(
        "sheet",
        "Sheet",
        ("sheet.close", "escape,q", "close", "Clear a filter or search; else back to the Bench", "back"),
        ("sheet.find", "slash", "find", "Find in the text", "find"),
        ("sheet.again", "n", "find_again(1)", "The next place", "next"),
        ("sheet.before", "N", "find_again(-1)", "The previous place"),
        ("sheet.filter", "f", "filter", "Show only rows with a text", "filter"),
        ("sheet.copy", "y", "copy", "Copy the whole text, or the path of an image", "copy"),
    ),
    *_keys(
        "message",
        "Message",
        ("message.next", "tab", "next_form", "The next form of this message", "form"),
        ("message.later", _NEXT, "beside(1)", "The next message of the call", "next message"),
        ("message.earlier", _PREVIOUS, "beside(-1)", "The previous message", "previous"),
        ("message.sides", "m", "form('sides')", "In full beside what the model saw"),
        ("message.raw", "r", "form('raw')", "The text as it is"),
        ("message.rendered", "t", "form('rendered')", "The text as Markdown, typeset"),
        ("message.json", "s", "form('json')", "The text as JSON: a structure that folds"),
        ("message.wire", "w", "form('wire')", "The message as it goes over the wire"),
        ("message.fold", "left,h", "fold(True)", "Fold what is around the line (JSON)"),
        ("message.unfold", "right,l", "fold(False)", "Unfold what begins at the line (JSON)"),
        ("message.all", "o", "open_all", "Open all of a result that was cut for the model", "all"),
        ("message.show", "O", "show_picture", "Show the image in a viewer of the system", "show"),
        ("message.save", "S", "save", "Save the image, or the text, to a file", "save"),
    ),
    *_keys(
        "diff",
        "Sheet",
        ("diff.next", _NEXT, "difference(1)", "The next difference", "next"),
        ("diff.previous", _PREVIOUS, "difference(-1)", "The previous difference"),
    ),
    *_keys(
        "compare",
        "Compare",
        ("compare.next", _NEXT, "difference(1)", "The next difference", "next"),
        ("compare.previous", _PREVIOUS, "difference(-1)", "The previous difference", "previous"),
        ("compare.apply", "a", "apply", "Write strategy B into the file; shows the change first", "apply B"),
        ("compare.swap", "v", "swap", "Swap the two sides", "swap"),
        ("compare.sides", "s", "sides", "Choose other strategies or runs to compare", "sides"),
        ("compare.ttl", "T", "ttl", "How long a cache keeps a prefix", "cache"),
    ),
    *_keys(
        "sides",
        "Compare",
        ("sides.first", "space", "first", "Make this side A; enter takes side B", "side A"),
        ("sides.swap", "v", "swap", "Swap the two sides", "swap"),
        ("sides.write", "w", "write", "Type a strategy as side B, or both sides", "type"),
        ("sides.sweep", "S", "sweep", "Try many strategies on the run of side A", "sweep"),
    ),
    *_keys(
        "changes",
        "Compare",
        ("changes.compare", "D", "compare", "Compare strategies or runs, too", "compare runs"),
    ),
    *_keys(
        "compare",
        "Compare",
        ("compare.plot", "P", "plot", "Tokens and cost over the calls, as a plot", "plot"),
        ("compare.sweep", "S", "sweep", "Try many strategies on this run", "sweep"),
        ("compare.export", "X", "export", "Write the comparison to an HTML or JSON file", "export"),
    ),
    *_keys(
        "candidates",
        "Candidates",
        ("candidates.choose", "c", "choose", "Choose this candidate, where the run waits for you", "choose"),
        ("candidates.answer", "a", "answer", "Answer what else the run asks you", "answer"),
        ("candidates.reject", "X", "reject", "Reject all: the phase fails", "reject all"),
        ("candidates.outputs", "d", "beside('outputs')", "Two outputs side by side", "diff"),
        ("candidates.prompts", "D", "beside('prompts')", "Two prompts side by side", "prompts"),
        ("candidates.mark", "space", "mark", "Mark the one to compare others with", "mark"),
        ("candidates.why", "v", "evaluation", "What the evaluator was asked and said", "evaluator"),
        ("candidates.plot", "P", "plot", "Quality against cost as a plot", "plot"),
        ("candidates.context", "i", "context", "Its newest call in the Bench", "context"),
        ("candidates.next", _NEXT, "contest(1)", "Candidates of the next phase", "next phase"),
        ("candidates.previous", _PREVIOUS, "contest(-1)", "Candidates of the previous phase"),
    ),
    *_keys(
        "sweep",
        "Sweep",
        ("sweep.stop", "x", "stop", "Stop; finished results stay", "stop"),
        ("sweep.mark", "space", "mark", "Mark a strategy to run live", "mark"),
        ("sweep.live", "L", "live", "Run the marked strategies live; shows the cost first", "live"),
        ("sweep.sort", "s", "sort", "Sort by dollars, by tokens, or as they were given", "sort"),
        ("sweep.plot", "P", "plot", "Tokens against cost as a plot", "plot"),
    ),
    *_keys(
        "breakpoints",
        "Breakpoints",
        ("breakpoints.add", "a", "add", "Add a breakpoint", "add"),
        ("breakpoints.edit", "e", "edit", "Edit the breakpoint", "edit"),
        ("breakpoints.disable", "space", "disable", "Disable the breakpoint, or enable it again", "disable"),
        ("breakpoints.delete", "d,delete", "delete", "Delete the breakpoint", "delete"),
    ),
    *_keys(
        "flow",
        "Flow",
        ("flow.left", "left,h", "side('left')", "The node at the left", "left"),
        ("flow.right", "right,l", "side('right')", "The node at the right", "right"),
        ("flow.outline", "v", "outline", "From the drawing to the outline and back", "outline"),
    ),
    *_keys(
        "plot",
        "Sheet",
        ("plot.export", "X", "export", "Save the plot as a picture: SVG or PNG", "export"),
    ),
    *_keys(
        "app",
        "Workbench",
        ("app.snapshots", "T", "snapshots", "The frozen runs of this workspace: check and review", "snapshots"),
    ),
    *_keys(
        "request",
        "Requests",
        ("request.next", _NEXT, "difference(1)", "The next difference of two requests", "next"),
        ("request.previous", _PREVIOUS, "difference(-1)", "The previous difference", "previous"),
        ("request.edit", "o", "edit", "Open the file at the line that decided", "open file"),
    ),
    *_keys(
        "changed",
        "Requests",
        ("changed.live", "c", "live", "Make this call and all after it", "make the calls"),
        ("changed.stop", "x", "stop", "Stop the run here; nothing was called", "stop"),
    ),
    *_keys(
        "snapshots",
        "Snapshots",
        ("snapshots.accept", "a", "decide('accepted')", "Accept: what happens now is the new expectation", "accept"),
        ("snapshots.reject", "r", "decide('rejected')", "Reject: the snapshot is right, the cascade is not", "reject"),
        ("snapshots.skip", "s", "decide('skipped')", "Skip: decide later", "skip"),
        ("snapshots.accept_all", "A", "decide_all('accepted')", "Accept all that are open", "all"),
        ("snapshots.reject_all", "R", "decide_all('rejected')", "Reject all that are open"),
        ("snapshots.skip_all", "S", "decide_all('skipped')", "Skip all that are open"),
        ("snapshots.undo", "u", "undo", "Undo the last decision", "undo"),
        ("snapshots.full", "d", "full", "Both requests in full, side by side", "full text"),
        ("snapshots.edit", "o", "edit", "Open the cascade file at the line", "open file"),
        ("snapshots.next", _NEXT, "next", "The next snapshot to decide about", "next"),
        ("snapshots.previous", _PREVIOUS, "next(-1)", "The snapshot to decide about before this one", "previous"),
        ("snapshots.check", "c", "check", "Check all snapshots again", "check"),
        ("snapshots.stop", "x", "stop", "Stop the check", "stop"),
        ("snapshots.copy", "y", "copy", "Copy the review"),
        ("snapshots.pane", "tab", "pane(1)", "Go to the next pane"),
        ("snapshots.pane_back", "shift+tab", "pane(-1)", "Go to the previous pane"),
        ("snapshots.close", "escape,q", "close", "Clear a filter or search; else back to the Bench", "back"),
    ),
    *_keys(
        "find",
        "Lists",
        ("find.text", "slash", "find", "Find in the list with the focus", "find"),
        ("find.again", "n", "find_again", "Find the same text further down"),
        ("find.before", "N", "find_again(-1)", "Find the same text further up"),
        ("find.filter", "f", "filter", "Show only rows with a text", "filter"),
    ),
    *_keys(
        "editor",
        "Editor",
        ("editor.save", "ctrl+s", "save", "Save the file; asks first if it changed on disk", "save"),
        ("editor.complete", "ctrl+space,ctrl+@", "complete", "Complete the word under the cursor", "complete"),
        ("editor.definition", "f12", "definition", "Go to the phase, tool or file that is named here", "definition"),
        ("editor.back", "alt+left", "back", "Back to where the cursor was before"),
        ("editor.rename", "ctrl+r", "rename", "Rename the phase everywhere in the file", "rename"),
        ("editor.next", "f8", "problem(1)", "Go to the next problem", "next problem"),
        ("editor.previous", "shift+f8", "problem(-1)", "Go to the previous problem"),
        ("editor.find", "ctrl+f", "find", "Find in the file", "find"),
        ("editor.again", "f3", "find_again(1)", "Find the same text again"),
        ("editor.before", "shift+f3", "find_again(-1)", "Find the same text further up"),
        ("editor.replace", "alt+r", "replace", "Replace a text everywhere; shows the change first", "replace"),
        ("editor.line", "ctrl+g", "go_to_line", "Go to a line, to line:column, or to a phase", "go to"),
        ("editor.comment", "ctrl+underscore,ctrl+slash", "comment", "Make comments of the lines, or lines of them"),
        ("editor.pane", "f6", "pane", "From the text to the problems and back"),
        ("editor.external", "f4", "external", "Open the file at this line in $EDITOR", "$EDITOR"),
        ("editor.close", "escape", "close", "Back to the Bench; asks before changes are lost", "back"),
    ),
    *_keys(
        "text",
        "Editor",
        ("text.undo", "ctrl+z", "undo", "Undo", "undo"),
        ("text.redo", "ctrl+y", "redo", "Redo"),
        ("text.all", "alt+a", "select_all", "Select the whole text", "all"),
        ("text.top", "ctrl+home", "text_top", "Go to the beginning of the text"),
        ("text.bottom", "ctrl+end", "text_bottom", "Go to the end of the text"),
    ),
    *_keys(
        "app",
        "Workbench",
        ("app.sql", "Q", "sql", "The SQL console: query all stored runs"),
    ),
    *_keys(
        "sql",
        "SQL",
        ("sql.ask", "f5,ctrl+enter,ctrl+j,ctrl+r", "ask", "Run the selection, else the whole query", "run"),
        ("sql.complete", "ctrl+space,ctrl+@", "complete", "Complete a table, a column or a word", "complete"),
        ("sql.earlier", "alt+up,ctrl+up", "history(1)", "The previous query", "earlier"),
        ("sql.later", "alt+down,ctrl+down", "history(-1)", "The next query"),
        ("sql.pane", "f6", "pane", "From the query to the catalogue, to the result", "next part"),
        ("sql.keep", "ctrl+s", "keep", "Save the query under a name", "save query"),
        ("sql.save", "ctrl+e", "save", "Export the result to a .csv, .json or .parquet file", "export"),
        ("sql.copy", "y", "copy", "Copy the row of the result, its cells separated by tabs", "copy"),
        ("sql.copy_all", "Y", "copy_all", "Copy all rows of the result with the names of the columns", "all"),
        ("sql.record", "space", "record", "Show the row of the result in full", "in full"),
        ("sql.right", _NEXT, "columns(1)", "Columns further right", "columns"),
        ("sql.left", _PREVIOUS, "columns(-1)", "Columns further left"),
        ("sql.rows", "s", "rows", "Show the first rows of the table in the catalogue", "first rows"),
        ("sql.drop", "delete", "drop", "Delete the saved query in the catalogue", "delete saved"),
        (
            "sql.close",
            "escape,q",
            "close",
            "Cancel the query that runs; else clear a filter or search; else back",
            "back",
        ),
    ),
    *_keys(
        "app",
        "Workbench",
        ("app.settings", "comma", "settings", "Settings and keys: values, where they come from, changes"),
    ),
    *_keys(
        "settings",
        "Settings",
        ("settings.tab", "tab", "tab", "From the settings to the keys and back", "keys"),
        ("settings.filter", "slash,f", "filter", "Show only rows with a text", "filter"),
        ("settings.change", "e", "change('user')", "Change the value in your own file", "change"),
        ("settings.workspace", "w", "change('workspace')", "Change the value in the workspace's file", "in workspace"),
        ("settings.unset", "x", "unset", "Remove the value from the file that sets it", "unset"),
        ("settings.external", "f4", "external", "Open your own file in $EDITOR", "$EDITOR"),
        ("settings.close", "escape,q", "close", "Clear the filter; else back", "back"),
    ),
    *_keys(
        "annotate",
        "Annotations",
        (
            "annotate.tag",
            "number_sign",
            "annotate('tag')",
            "Tag the call; in a list the run, or all marked ones",
            "tag",
        ),
        ("annotate.note", "quotation_mark", "annotate('note')", "Write a note on it", "note"),
        ("annotate.score", "asterisk", "annotate('score')", "Score it by a number", "score"),
        ("annotate.up", "plus", "annotate('up')", "Thumb up; again removes it", "good"),
        ("annotate.down", "minus", "annotate('down')", "Thumb down; again removes it", "bad"),
        ("annotate.link", "U", "link", "Copy a read-only link to the call; to the run in a list", "link"),
    ),
    *_keys(
        "note",
        "Annotations",
        ("note.save", "ctrl+s", "save", "Save the note", "save"),
    ),
    *_keys(
        "app",
        "Workbench",
        ("app.runs", "L", "runs", "All stored runs: find, compare, fork, resume", "runs"),
        ("app.home", "H", "home", "The cascades and runs of this folder", "home"),
    ),
    *_keys(
        "runs",
        "Runs",
        ("runs.filter", "f,slash", "filter", "Filter: status:failed tokens>8000 text:word", "filter"),
        ("runs.sort", "s", "sort", "Sort by time, cost, tokens, status …; again turns it round", "sort"),
        ("runs.mark", "space", "mark", "Mark the run: to compare it, or to tag several at once", "mark"),
        ("runs.compare", "D", "compare", "Compare two marked runs, or the marked one and this", "compare"),
        ("runs.resume", "c", "go_on", "Resume the run where it stopped", "resume"),
        ("runs.fork", "F", "fork", "A new run from a place of this one", "fork"),
        ("runs.freeze", "t", "freeze", "Freeze the run as a test", "freeze"),
        ("runs.export", "X", "export", "Write the run to a file for other tools", "export"),
        ("runs.batches", "M", "batches", "Batches: inputs and variants in a table", "batches"),
        ("runs.copy", "y", "copy", "Copy the run's session id", "copy"),
        ("runs.delete", "delete", "delete", "Delete the run permanently; asks first", "delete"),
        ("runs.close", "escape,q", "close", "Clear the filter, then back to where you came from", "back"),
    ),
    *_keys(
        "batch",
        "Batch",
        ("batch.left", "left,h", "column(-1)", "The variant to the left", "variant"),
        ("batch.right", "right,l", "column(1)", "The variant to the right"),
        ("batch.sort", "s", "sort", "Sort by score, cost, time or status of the variant", "sort"),
        ("batch.cell", "v", "cell", "The cell whole: input, output, scores", "whole"),
        ("batch.mark", "space", "mark", "Mark the cell for a comparison", "mark"),
        ("batch.diff", "D", "diff", "Compare with the marked cell, else with the first variant", "diff"),
        ("batch.compare", "p", "compare", "The variants compared row by row, with intervals", "compare"),
        ("batch.next", _NEXT, "batch(1)", "The batch that was run before", "earlier"),
        ("batch.previous", _PREVIOUS, "batch(-1)", "The batch that was run after"),
        ("batch.typeset", "m", "typeset", "Draw the Markdown of outputs, or show it raw", "raw"),
        ("batch.copy", "y", "copy", "Copy the output of the cell", "copy"),
        ("batch.close", "escape,q", "close", "Clear the filter, then back", "back"),
    ),
    *_keys(
        "home",
        "Home",
        ("home.next", "tab", "pane(1)", "From the cascades to the runs and back", "other list"),
        ("home.previous", "shift+tab", "pane(-1)", "From the runs to the cascades and back"),
        ("home.new", "n", "new", "A new cascade from a template", "new"),
        ("home.inputs", "I", "inputs", "Show, change and save the inputs of the file", "inputs"),
        ("home.demo", "d", "demo", "Copy the examples to a new folder and open the tour", "demo"),
        ("home.look", "r", "look", "Reload the folder", "reload"),
        ("home.close", "escape", "close", "Clear a filter or search; else back to the Bench, if one is open", "back"),
    ),
    *_keys(
        "form",
        "Forms",
        ("form.send", "ctrl+s,f10", "send", "Send the answer, if it fits", "send"),
        ("form.next", "tab", "next", "The next question", "next"),
        ("form.previous", "shift+tab", "previous", "The previous question"),
    ),
    *_keys(
        "choices",
        "Forms",
        (
            "choices.choose",
            "space",
            "choose",
            "Choose the row, or take it back; its number chooses it, and the focus stays",
            "or 1-9 choose",
        ),
        ("choices.down", "j", "step(1)", "The next row"),
        ("choices.up", "k", "step(-1)", "The previous row"),
        ("choices.first", "g", "first", "The first row"),
        ("choices.last", "G", "last", "The last row"),
    ),
    *_keys(
        "edit",
        "Edit",
        ("edit.save", "ctrl+s", "save", "Review the edits; from there they are made", "review"),
        ("edit.close", "escape", "close", "From the text to the list; from there back", "back"),
        ("edit.add", "a", "add", "Write a new message below this one", "add"),
        ("edit.drop", "d,delete", "drop", "Drop the message from the request", "drop"),
        ("edit.up", "K,alt+up", "move(-1)", "Move the message up", "up"),
        ("edit.down", "J,alt+down", "move(1)", "Move the message down", "down"),
        ("edit.role", "r", "role", "Give the message the next role", "role"),
        ("edit.request", "m", "request", "Model and parameters, with prices", "model"),
        ("edit.state", "s", "state", "Write a new state value", "state"),
        ("edit.error", "exclamation_mark", "error", "Mark the tool's result as an error, or not", "error"),
        ("edit.undo", "u", "undo", "Undo the last edit", "undo"),
        ("edit.redo", "U", "redo", "Redo the edit", "redo"),
        ("edit.copy", "y", "copy", "Copy the text under the cursor"),
        ("edit.external", "ctrl+e,f4", "external", "Write the text in $EDITOR", "$EDITOR"),
        ("edit.pane", "f6", "pane", "From the list to the text and back", "text"),
    ),
    *_keys(
        "bench",
        "Run",
        ("run.playground", "P", "playground", "Send the selected call again: the playground", "playground"),
    ),
    *_keys(
        "playground",
        "Playground",
        ("playground.send", "r", "send", "Send the request to the models", "send"),
        ("playground.stop", "x", "stop", "Stop the calls that are running", "stop"),
        ("playground.edit", "e,E", "edit", "Edit the request", "edit"),
        ("playground.models", "m", "settings", "Models, samples and budget", "models"),
        ("playground.fork", "F", "fork", "Make this a fork of the run", "fork"),
        ("playground.prompt", "w", "prompt", "Write the prompt into the file", "to file"),
        ("playground.right", _NEXT, "columns(1)", "Models further right"),
        ("playground.left", _PREVIOUS, "columns(-1)", "Models further left"),
        ("playground.copy", "y", "copy", "Copy the answer", "copy"),
        ("playground.pane", "tab", "pane", "From the list to the answers and back"),
        ("playground.close", "escape,q", "close", "Stop the calls; else back", "back"),
    ),
    *_keys(
        "review",
        "Edit",
        ("review.send", "ctrl+s", "send", "Make the edits", "make the edits"),
    ),
    *_keys(
        "borders",
        "Borders",
        ("borders.narrower", "alt+left", "resize('width', -4)", "The left side narrower: candidates, comparison"),
        ("borders.wider", "alt+right", "resize('width', 4)", "The left side wider"),
        ("borders.higher", "alt+up", "resize('height', 2)", "The lower pane higher: runs, home, candidates"),
        ("borders.lower", "alt+down", "resize('height', -2)", "The lower pane lower"),
    ),
    *_keys(
        "dialog",
        "Dialogs",
        ("dialog.close", "escape", "close", "Close without doing anything", "close"),
        ("dialog.interrupt", "ctrl+c", "interrupt", "Copy selected text; else close, and stop the run that asks"),
    ),
    *_keys(
        "app",
        "Workbench",
        ("app.palette", "ctrl+p", "command_palette", "Run any command by name", "palette"),
        ("app.help", "question_mark,f1", "help", "Keys and signs", "help"),
        ("app.screenshot", "f7", "save_screen", "Save the screen as an SVG picture"),
        ("app.theme", "f2", "next_theme", "The next colour theme"),
        ("app.interrupt", "ctrl+c", "interrupt", "Copy selected text; else stop the run; else quit"),
        ("app.suspend", "ctrl+z", "suspend_process", "Back to the shell; fg returns"),
        ("app.quit", "q", "leave", "Quit; asks while a run is active. On other screens than the Bench, back", "quit"),
    ),
)
"""The order is that of the help; in the footer too, as far as there is room."""

CONTEXTS: dict[str, tuple[str, ...]] = {
    "app": ("bench", "tree", "list"),
    "found": (),
    "bench": ("app", "tree", "list"),
    "tree": ("bench", "app", "list"),
    "list": ("bench", "app", "tree", "sheet", "compare", "message", "candidates", "sweep"),
    "sheet": ("list", "compare", "message", "candidates", "sweep"),
    "borders": ("app", "list", "tree", "sheet", "runs", "home", "compare", "candidates", "find"),
    "compare": ("list", "sheet"),
    "sides": ("list", "sheet"),
    "changes": ("list", "sheet"),
    "candidates": ("list", "sheet"),
    "sweep": ("list", "sheet"),
    "breakpoints": ("list", "sheet"),
    "flow": ("list", "sheet"),
    "plot": ("list", "sheet"),
    "find": ("app", "list", "snapshots", "sql", "editor", "text"),
    "editor": ("app", "text", "list"),
    "text": ("editor", "sql"),
    "sql": ("text", "list"),
    "settings": ("list",),
    "annotate": ("app", "bench", "runs", "batch", "tree", "list", "borders"),
    "note": ("dialog",),
    "runs": ("tree", "list"),
    "home": ("app", "list"),
    "batch": ("list", "find"),
    "dialog": ("form", "choices"),
    "form": ("dialog", "choices"),
    "choices": ("dialog", "form"),
    "request": ("list", "sheet", "changed"),
    "changed": ("list", "sheet", "request"),
    "snapshots": ("list",),
    "message": ("sheet", "list"),
    "diff": ("sheet", "list", "review"),
    "edit": ("app", "list", "text", "find"),
    "review": ("list", "sheet", "diff"),
    "playground": ("list", "find"),
}
"""Contexts whose keys work at the same time: a key may not have two meanings in them. Those of ``found`` win over all
others while matches of a search are marked.
"""


def _ids(commands: str) -> tuple[str, ...]:
    return tuple(commands.split())


FOOTERS: dict[str, tuple[str, ...]] = {
    "idle": _ids("run.over run.start run.inputs run.condition view.edit"),
    "held": _ids("run.over run.into run.out run.continue run.stop run.edit run.fork"),
    "running": _ids("run.pause run.stop run.feedback"),
    "asked": _ids("run.answer run.stop"),
    "unfinished": _ids("run.continue run.over run.start run.fork"),
    "done": _ids("run.start run.again run.freeze run.fork"),
    "editor": _ids(
        "editor.save editor.close editor.complete editor.definition editor.next editor.find editor.replace "
        "editor.line editor.rename text.undo editor.external"
    ),
    "settings": _ids(
        "settings.change settings.close settings.workspace settings.unset settings.filter settings.tab "
        "settings.external"
    ),
    "sql": _ids("sql.ask sql.close sql.complete sql.pane sql.earlier text.all sql.keep sql.save"),
    "sql_result": _ids(
        "list.open sql.pane sql.close sql.record sql.right sql.copy sql.copy_all sql.save find.text find.filter"
    ),
    "sql_side": _ids("list.open sql.close sql.rows sql.drop find.text find.filter sql.pane"),
    "runs": _ids(
        "list.open runs.filter annotate.tag annotate.note annotate.score runs.resume runs.fork runs.mark "
        "runs.compare runs.sort runs.freeze runs.export runs.copy runs.delete runs.batches"
    ),
    "batch": _ids(
        "list.open batch.left batch.sort find.filter batch.cell batch.mark batch.diff batch.compare "
        "annotate.score batch.next batch.copy"
    ),
    "home": _ids("list.open home.new home.inputs home.next find.filter app.runs app.snapshots home.demo home.look"),
    "edit": _ids(
        "list.open edit.save edit.close edit.add edit.drop edit.undo edit.redo edit.request edit.up edit.role "
        "edit.external edit.state edit.error"
    ),
    "playground": _ids(
        "playground.send playground.close playground.edit playground.models playground.fork playground.prompt "
        "list.open playground.stop playground.copy"
    ),
    "edit text": _ids("edit.save edit.close text.undo edit.external"),
}
"""Keys that the footer offers in each situation, the most useful first; it shows as many as there is room for."""

PANE_FOOTERS: dict[str, tuple[str, ...]] = {
    "tree": _ids("view.previous view.next tree.fold tree.unfold view.ways run.condition view.find pane.zoom"),
    "context": _ids(
        "view.why list.open view.previous view.next view.wire view.diff view.full view.strategies view.copy view.find"
    ),
    "detail": _ids("view.wire view.why view.full view.copy list.open view.find pane.zoom"),
    "dock": _ids("list.open view.find view.filter view.copy pane.zoom"),
}
"""Commands that the footer of the Bench offers for the focused pane, beside the keys of the run."""

ON_SHEETS = ("app.palette", "app.help", "app.screenshot", "app.theme", "app.interrupt", "app.suspend")
"""Commands of the app that work on a sheet, too: what lies below it has no keys while it is open."""

ON_DIALOGS = ("app.help", "app.screenshot", "app.theme")
"""Commands of the app that work in a dialog, too; the others would act on the screen below it."""

ALWAYS = ("app.palette", "app.help", "app.quit")
"""Keys at the right end of the footer."""


def not_typed(keys: str) -> str:
    """Those of several keys that write nothing into a text: ``f1`` of ``question_mark,f1``."""
    return ",".join(key for key in keys.split(",") if len(display(key)) > 1 and key.strip() != "space")


def hints(ids: Iterable[str], table: Iterable[Key] = KEYS, *, writes: bool = False) -> tuple[tuple[str, str, str], ...]:
    """``(command, key, word)`` for a footer. ``writes``: a text has the focus; a key that would be written into it is
    not offered."""
    by_id = {key.id: key for key in table}
    shown = ((by_id[id], not_typed(by_id[id].keys) if writes else by_id[id].keys) for id in ids)
    return tuple((key.id, display(keys), key.short) for key, keys in shown if keys)


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
    """Another command that shares a key with this one while both are active."""
    mine = next(key for key in table if key.id == id)
    wanted = {name.strip() for name in mine.keys.split(",")}
    for other in table:
        if other.id != id and _together(mine, other) and wanted & {name.strip() for name in other.keys.split(",")}:
            return other
    return None


def _together(a: Key, b: Key) -> bool:
    """Returns whether the keys of two commands work at the same time."""
    return any(x == y or _meet(x, y) for x in _where(a) for y in _where(b))


def _where(key: Key) -> tuple[str, ...]:
    also = (("sheet", ON_SHEETS), ("dialog", ON_DIALOGS))
    return (key.context, *(context for context, commands in also if key.id in commands))


def _meet(a: str, b: str) -> bool:
    """Returns whether the keys of two contexts work at the same time."""
    return a in CONTEXTS[b] or b in CONTEXTS[a]
