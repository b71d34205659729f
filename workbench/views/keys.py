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


FORM_KEYS: tuple[Key, ...] = (
    Key("form.send", "ctrl+s,f10", "send", "form", "Send the answer, if it fits", "Forms", "send"),
    Key("form.next", "tab", "next", "form", "The next question", "Forms", "next", priority=True),
    Key("form.previous", "shift+tab", "previous", "form", "The previous question", "Forms", priority=True),
    Key(
        "choices.choose",
        "space",
        "choose",
        "choices",
        "Choose the row, or take it back; a number does too",
        "Forms",
        "choose",
    ),
    Key("choices.down", "j", "step(1)", "choices", "The next row", "Forms"),
    Key("choices.up", "k", "step(-1)", "choices", "The previous row", "Forms"),
    Key("choices.first", "g", "first", "choices", "The first row", "Forms"),
    Key("choices.last", "G", "last", "choices", "The last row", "Forms"),
)
FORM_CONTEXTS: dict[str, tuple[str, ...]] = {
    "dialog": ("form", "choices"),
    "form": ("dialog", "choices"),
    "choices": ("dialog", "form"),
}


MESSAGE_KEYS: tuple[Key, ...] = (
    Key("message.next", "tab", "next_form", "message", "The next form of this message", "Message", "form"),
    Key(
        "message.later",
        "right_square_bracket",
        "beside(1)",
        "message",
        "The next message of the call",
        "Message",
        "next message",
    ),
    Key(
        "message.earlier", "left_square_bracket", "beside(-1)", "message", "The previous message", "Message", "previous"
    ),
    Key("message.sides", "m", "form('sides')", "message", "In full beside what the model saw", "Message"),
    Key("message.raw", "r", "form('raw')", "message", "The text as it is", "Message"),
    Key("message.rendered", "t", "form('rendered')", "message", "The text as Markdown, typeset", "Message"),
    Key("message.json", "s", "form('json')", "message", "The text as JSON: a structure that folds", "Message"),
    Key("message.wire", "w", "form('wire')", "message", "The message as it goes over the wire", "Message"),
    Key("message.fold", "left,h", "fold(True)", "message", "Fold what is around the line (JSON)", "Message"),
    Key("message.unfold", "right,l", "fold(False)", "message", "Unfold what begins at the line (JSON)", "Message"),
    Key("message.all", "o", "open_all", "message", "Open all of a result that was cut for the model", "Message", "all"),
    Key("message.show", "O", "show_picture", "message", "Show the image in a viewer of the system", "Message", "show"),
    Key("message.save", "S", "save", "message", "Save the image, or the text, to a file", "Message", "save"),
)

DIFF_KEYS: tuple[Key, ...] = (
    Key("diff.next", "right_square_bracket", "difference(1)", "diff", "The next difference", "Sheet", "next"),
    Key("diff.previous", "left_square_bracket", "difference(-1)", "diff", "The previous difference", "Sheet"),
)

MESSAGE_CONTEXTS: dict[str, tuple[str, ...]] = {"message": ("sheet", "list"), "diff": ("sheet", "list", "review")}
"""For ``CONTEXTS``."""


REVIEW_KEYS: tuple[Key, ...] = (
    Key(
        "app.snapshots",
        "T",
        "snapshots",
        "app",
        "The frozen runs of this workspace: check and review",
        "Workbench",
        "snapshots",
    ),
    Key(
        "request.next",
        "right_square_bracket",
        "difference(1)",
        "request",
        "The next difference of two requests",
        "Requests",
        "next",
    ),
    Key(
        "request.previous",
        "left_square_bracket",
        "difference(-1)",
        "request",
        "The previous difference",
        "Requests",
        "previous",
    ),
    Key("request.edit", "o", "edit", "request", "Open the file at the line that decided", "Requests", "open file"),
    Key("changed.live", "c", "live", "changed", "Make this call and all after it", "Requests", "make the calls"),
    Key("changed.stop", "x", "stop", "changed", "Stop the run here; nothing was called", "Requests", "stop"),
    Key(
        "snapshots.accept",
        "a",
        "decide('accepted')",
        "snapshots",
        "Accept: what happens now is the new expectation",
        "Snapshots",
        "accept",
    ),
    Key(
        "snapshots.reject",
        "r",
        "decide('rejected')",
        "snapshots",
        "Reject: the snapshot is right, the cascade is not",
        "Snapshots",
        "reject",
    ),
    Key("snapshots.skip", "s", "decide('skipped')", "snapshots", "Skip: decide later", "Snapshots", "skip"),
    Key(
        "snapshots.accept_all",
        "A",
        "decide_all('accepted')",
        "snapshots",
        "Accept all that are open",
        "Snapshots",
        "all",
    ),
    Key("snapshots.reject_all", "R", "decide_all('rejected')", "snapshots", "Reject all that are open", "Snapshots"),
    Key("snapshots.skip_all", "S", "decide_all('skipped')", "snapshots", "Skip all that are open", "Snapshots"),
    Key("snapshots.undo", "u", "undo", "snapshots", "Undo the last decision", "Snapshots", "undo"),
    Key("snapshots.full", "d", "full", "snapshots", "Both requests in full, side by side", "Snapshots", "full text"),
    Key("snapshots.edit", "o", "edit", "snapshots", "Open the cascade file at the line", "Snapshots", "open file"),
    Key(
        "snapshots.next",
        "right_square_bracket",
        "next",
        "snapshots",
        "The next snapshot to decide about",
        "Snapshots",
        "next",
    ),
    Key(
        "snapshots.previous",
        "left_square_bracket",
        "next(-1)",
        "snapshots",
        "The snapshot to decide about before this one",
        "Snapshots",
        "previous",
    ),
    Key("snapshots.check", "c", "check", "snapshots", "Check all snapshots again", "Snapshots", "check"),
    Key("snapshots.stop", "x", "stop", "snapshots", "Stop the check", "Snapshots", "stop"),
    Key("snapshots.copy", "y", "copy", "snapshots", "Copy the review", "Snapshots"),
    Key("snapshots.pane", "tab", "pane(1)", "snapshots", "Go to the next pane", "Snapshots"),
    Key("snapshots.pane_back", "shift+tab", "pane(-1)", "snapshots", "Go to the previous pane", "Snapshots"),
    Key(
        "snapshots.close",
        "escape,q",
        "close",
        "snapshots",
        "Clear a filter or search; else back to the Bench",
        "Snapshots",
        "back",
    ),
)

REVIEW_CONTEXTS: dict[str, tuple[str, ...]] = {
    "request": ("list", "sheet", "changed"),
    "changed": ("list", "sheet", "request"),
    "snapshots": ("list",),
}


EDITOR_KEYS: tuple[Key, ...] = (
    Key("editor.save", "ctrl+s", "save", "editor", "Save the file; asks first if it changed on disk", "Editor", "save"),
    Key(
        "editor.complete",
        "ctrl+space,ctrl+@",
        "complete",
        "editor",
        "Complete the word under the cursor",
        "Editor",
        "complete",
        priority=True,
    ),
    Key(
        "editor.definition",
        "f12",
        "definition",
        "editor",
        "Go to the phase, tool or file that is named here",
        "Editor",
        "definition",
    ),
    Key("editor.back", "alt+left", "back", "editor", "Back to where the cursor was before", "Editor"),
    Key(
        "editor.rename",
        "ctrl+r",
        "rename",
        "editor",
        "Rename the phase everywhere in the file",
        "Editor",
        "rename",
        priority=True,
    ),
    Key("editor.next", "f8", "problem(1)", "editor", "Go to the next problem", "Editor", "next problem"),
    Key("editor.previous", "shift+f8", "problem(-1)", "editor", "Go to the previous problem", "Editor"),
    Key("editor.find", "ctrl+f", "find", "editor", "Find in the file", "Editor", "find", priority=True),
    Key("editor.again", "f3", "find_again(1)", "editor", "Find the same text again", "Editor"),
    Key("editor.before", "shift+f3", "find_again(-1)", "editor", "Find the same text further up", "Editor"),
    Key("editor.line", "ctrl+g", "go_to_line", "editor", "Go to a line, or to line:column", "Editor", "line"),
    Key("editor.pane", "f6", "pane", "editor", "From the text to the problems and back", "Editor", priority=True),
    Key("editor.external", "f4", "external", "editor", "Open the file at this line in $EDITOR", "Editor", "$EDITOR"),
    Key(
        "editor.close", "escape", "close", "editor", "Back to the Bench; asks before changes are lost", "Editor", "back"
    ),
    Key("text.undo", "ctrl+z", "undo", "text", "Undo", "Editor", "undo"),
    Key("text.redo", "ctrl+y", "redo", "text", "Redo", "Editor"),
    Key("text.all", "alt+a", "select_all", "text", "Select the whole text", "Editor", "all"),
    Key("text.top", "ctrl+home", "text_top", "text", "Go to the beginning of the text", "Editor"),
    Key("text.bottom", "ctrl+end", "text_bottom", "text", "Go to the end of the text", "Editor"),
)

FIND_KEYS: tuple[Key, ...] = (
    Key("find.text", "slash", "find", "find", "Find in the list with the focus", "Lists", "find"),
    Key("find.again", "n", "find_again", "find", "Find the same text further down", "Lists"),
    Key("find.before", "N", "find_again(-1)", "find", "Find the same text further up", "Lists"),
    Key("find.filter", "f", "filter", "find", "Show only rows with a text", "Lists", "filter"),
)

SQL_KEYS: tuple[Key, ...] = (
    Key("app.sql", "Q", "sql", "app", "The SQL console: query all stored runs", "Workbench"),
    Key(
        "sql.ask",
        "f5,ctrl+enter,ctrl+j,ctrl+r",
        "ask",
        "sql",
        "Run the selection, else the whole query",
        "SQL",
        "run",
        priority=True,
    ),
    Key(
        "sql.complete",
        "ctrl+space,ctrl+@",
        "complete",
        "sql",
        "Complete a table, a column or a word",
        "SQL",
        "complete",
        priority=True,
    ),
    Key("sql.earlier", "alt+up,ctrl+up", "history(1)", "sql", "The previous query", "SQL", "earlier", priority=True),
    Key("sql.later", "alt+down,ctrl+down", "history(-1)", "sql", "The next query", "SQL", priority=True),
    Key(
        "sql.pane",
        "f6",
        "pane",
        "sql",
        "From the query to the result, to the catalogue",
        "SQL",
        "next part",
        priority=True,
    ),
    Key("sql.keep", "ctrl+s", "keep", "sql", "Save the query under a name", "SQL", "save query", priority=True),
    Key(
        "sql.save",
        "ctrl+e",
        "save",
        "sql",
        "Export the result to a .csv, .json or .parquet file",
        "SQL",
        "export",
        priority=True,
    ),
    Key("sql.copy", "y", "copy", "sql", "Copy the row of the result, its cells separated by tabs", "SQL", "copy"),
    Key("sql.record", "space", "record", "sql", "Show the row of the result in full", "SQL", "row in full"),
    Key("sql.right", "right_square_bracket", "columns(1)", "sql", "Columns further right", "SQL", "columns"),
    Key("sql.left", "left_square_bracket", "columns(-1)", "sql", "Columns further left", "SQL"),
    Key("sql.rows", "s", "rows", "sql", "Show the first rows of the table in the catalogue", "SQL", "first rows"),
    Key("sql.drop", "delete", "drop", "sql", "Delete the saved query in the catalogue", "SQL", "delete saved"),
    Key(
        "sql.close",
        "escape,q",
        "close",
        "sql",
        "Cancel the query that runs; else clear a filter or search; else back",
        "SQL",
        "back",
    ),
)

SETTINGS_KEYS: tuple[Key, ...] = (
    Key(
        "app.settings",
        "comma",
        "settings",
        "app",
        "Settings and keys: values, where they come from, changes",
        "Workbench",
    ),
    Key("settings.tab", "tab", "tab", "settings", "From the settings to the keys and back", "Settings", "keys"),
    Key("settings.filter", "slash,f", "filter", "settings", "Show only rows with a text", "Settings", "filter"),
    Key(
        "settings.change", "e", "change('user')", "settings", "Change the value in your own file", "Settings", "change"
    ),
    Key(
        "settings.workspace",
        "w",
        "change('workspace')",
        "settings",
        "Change the value in the workspace's file",
        "Settings",
        "in workspace",
    ),
    Key("settings.unset", "x", "unset", "settings", "Remove the value from the file that sets it", "Settings", "unset"),
    Key("settings.external", "f4", "external", "settings", "Open your own file in $EDITOR", "Settings", "$EDITOR"),
    Key("settings.close", "escape,q", "close", "settings", "Clear the filter; else back", "Settings", "back"),
)

ROOM_KEYS: tuple[Key, ...] = (*FIND_KEYS, *EDITOR_KEYS, *SQL_KEYS, *SETTINGS_KEYS)

ROOM_CONTEXTS: dict[str, tuple[str, ...]] = {
    # Not with home: there, n goes to the next match only while a search is marked.
    "find": ("app", "list", "snapshots", "sql", "editor", "text"),
    "editor": ("app", "text", "list"),
    "text": ("editor", "sql"),
    "sql": ("text", "list"),
    "settings": ("list",),
}
"""For ``CONTEXTS``."""

ROOM_FOOTERS: dict[str, tuple[str, ...]] = {
    "editor": (
        "editor.save",
        "editor.close",
        "editor.complete",
        "editor.definition",
        "editor.rename",
        "editor.next",
        "editor.find",
        "editor.line",
        "text.undo",
        "editor.external",
    ),
    "settings": (
        "settings.change",
        "settings.close",
        "settings.workspace",
        "settings.unset",
        "settings.filter",
        "settings.tab",
        "settings.external",
    ),
    "sql": ("sql.ask", "sql.close", "sql.complete", "sql.pane", "sql.earlier", "text.all", "sql.keep", "sql.save"),
    "sql_result": (
        "list.open",
        "sql.close",
        "sql.record",
        "sql.right",
        "sql.copy",
        "sql.save",
        "find.text",
        "find.filter",
        "sql.pane",
    ),
    "sql_side": ("list.open", "sql.close", "sql.rows", "sql.drop", "find.text", "find.filter", "sql.pane"),
}
"""For ``FOOTERS``."""


ANNOTATION_KEYS: tuple[Key, ...] = (
    Key(
        "annotate.tag",
        "number_sign",
        "annotate('tag')",
        "annotate",
        "Tag the call; in a list the run, or all marked ones",
        "Annotations",
        "tag",
    ),
    Key("annotate.note", "quotation_mark", "annotate('note')", "annotate", "Write a note on it", "Annotations", "note"),
    Key("annotate.score", "asterisk", "annotate('score')", "annotate", "Score it by a number", "Annotations", "score"),
    Key("annotate.up", "plus", "annotate('up')", "annotate", "Thumb up; again removes it", "Annotations", "good"),
    Key(
        "annotate.down",
        "minus",
        "annotate('down')",
        "annotate",
        "Thumb down; again removes it",
        "Annotations",
        "bad",
    ),
    Key(
        "annotate.link",
        "U",
        "link",
        "annotate",
        "Copy a read-only link to the call; to the run in a list",
        "Annotations",
        "link",
    ),
    Key("note.save", "ctrl+s", "save", "note", "Save the note", "Annotations", "save", priority=True),
)

ANNOTATION_CONTEXTS: dict[str, tuple[str, ...]] = {
    "annotate": ("app", "bench", "runs", "batch", "tree", "list", "borders"),
    "note": ("dialog",),
}
"""For ``CONTEXTS``."""


RUN_KEYS: tuple[Key, ...] = (
    Key("app.runs", "L", "runs", "app", "All stored runs: find, compare, fork, resume", "Workbench", "runs"),
    Key("app.home", "H", "home", "app", "The cascades and runs of this folder", "Workbench", "home"),
    Key("runs.filter", "f,slash", "filter", "runs", "Filter: status:failed tokens>8000 text:word", "Runs", "filter"),
    Key("runs.sort", "s", "sort", "runs", "Sort by time, cost, tokens, seconds", "Runs", "sort"),
    Key("runs.mark", "space", "mark", "runs", "Mark the run: to compare it, or to tag several at once", "Runs", "mark"),
    Key(
        "runs.compare", "D", "compare", "runs", "Compare two marked runs, or the marked one and this", "Runs", "compare"
    ),
    Key("runs.resume", "c", "go_on", "runs", "Resume the run where it stopped", "Runs", "resume"),
    Key("runs.fork", "F", "fork", "runs", "A new run from a place of this one", "Runs", "fork"),
    Key("runs.freeze", "t", "freeze", "runs", "Freeze the run as a test", "Runs", "freeze"),
    Key("runs.export", "X", "export", "runs", "Write the run to a file for other tools", "Runs", "export"),
    Key("runs.batches", "M", "batches", "runs", "Batches: inputs and variants in a table", "Runs", "batches"),
    Key("runs.copy", "y", "copy", "runs", "Copy the run's session id", "Runs", "copy"),
    Key("runs.delete", "delete", "delete", "runs", "Delete the run permanently; asks first", "Runs", "delete"),
    Key(
        "runs.close", "escape,q", "close", "runs", "Clear the filter, then back to where you came from", "Runs", "back"
    ),
    Key("batch.left", "left,h", "column(-1)", "batch", "The variant to the left", "Batch", "variant"),
    Key("batch.right", "right,l", "column(1)", "batch", "The variant to the right", "Batch"),
    Key("batch.sort", "s", "sort", "batch", "Sort by score, cost, time or status of the variant", "Batch", "sort"),
    Key("batch.cell", "v", "cell", "batch", "The cell whole: input, output, scores", "Batch", "whole"),
    Key("batch.mark", "space", "mark", "batch", "Mark the cell for a comparison", "Batch", "mark"),
    Key(
        "batch.diff", "D", "diff", "batch", "Compare with the marked cell, else with the first variant", "Batch", "diff"
    ),
    Key(
        "batch.compare", "p", "compare", "batch", "The variants compared row by row, with intervals", "Batch", "compare"
    ),
    Key("batch.next", "right_square_bracket", "batch(1)", "batch", "The batch that was run before", "Batch", "earlier"),
    Key("batch.previous", "left_square_bracket", "batch(-1)", "batch", "The batch that was run after", "Batch"),
    Key("batch.typeset", "m", "typeset", "batch", "Draw the Markdown of outputs, or show it raw", "Batch", "raw"),
    Key("batch.copy", "y", "copy", "batch", "Copy the output of the cell", "Batch", "copy"),
    Key("batch.close", "escape,q", "close", "batch", "Clear the filter, then back", "Batch", "back"),
    Key("home.next", "tab", "pane(1)", "home", "From the cascades to the runs and back", "Home", "other list"),
    Key("home.previous", "shift+tab", "pane(-1)", "home", "From the runs to the cascades and back", "Home"),
    Key("home.new", "n", "new", "home", "A new cascade from a template", "Home", "new"),
    Key("home.inputs", "I", "inputs", "home", "Show, change and save the inputs of the file", "Home", "inputs"),
    Key("home.demo", "d", "demo", "home", "Copy the examples to a new folder and open the tour", "Home", "demo"),
    Key("home.look", "r", "look", "home", "Reload the folder", "Home", "reload"),
    Key(
        "home.close",
        "escape",
        "close",
        "home",
        "Clear a filter or search; else back to the Bench, where a cascade is open",
        "Home",
    ),
)

RUN_CONTEXTS: dict[str, tuple[str, ...]] = {
    "runs": ("tree", "list"),
    "home": ("app", "list"),
    "batch": ("list", "find"),
}
"""For ``CONTEXTS``."""

RUN_FOOTERS: dict[str, tuple[str, ...]] = {
    "runs": (
        "list.open",
        "runs.filter",
        "annotate.tag",
        "annotate.note",
        "annotate.score",
        "runs.resume",
        "runs.fork",
        "runs.mark",
        "runs.compare",
        "runs.sort",
        "runs.freeze",
        "runs.export",
        "runs.copy",
        "runs.delete",
        "runs.batches",
    ),
    "batch": (
        "list.open",
        "batch.left",
        "batch.sort",
        "find.filter",
        "batch.cell",
        "batch.mark",
        "batch.diff",
        "batch.compare",
        "annotate.score",
        "batch.next",
        "batch.copy",
    ),
    "home": (
        "list.open",
        "home.new",
        "home.inputs",
        "home.next",
        "find.filter",
        "app.runs",
        "app.snapshots",
        "home.demo",
        "home.look",
    ),
}
"""For ``FOOTERS``."""


_NEXT, _PREVIOUS = "right_square_bracket", "left_square_bracket"

SIDE_KEYS: tuple[Key, ...] = (
    Key("compare.next", _NEXT, "difference(1)", "compare", "The next difference", "Compare", "next"),
    Key("compare.previous", _PREVIOUS, "difference(-1)", "compare", "The previous difference", "Compare", "previous"),
    Key(
        "compare.apply",
        "a",
        "apply",
        "compare",
        "Write strategy B into the file; shows the change first",
        "Compare",
        "apply B",
    ),
    Key("compare.swap", "v", "swap", "compare", "Swap the two sides", "Compare", "swap"),
    Key("compare.sides", "s", "sides", "compare", "Choose other strategies or runs to compare", "Compare", "sides"),
    Key("compare.ttl", "T", "ttl", "compare", "How long a cache keeps a prefix", "Compare", "cache"),
    Key("sides.first", "space", "first", "sides", "Make this side A; enter takes side B", "Compare", "side A"),
    Key("sides.swap", "v", "swap", "sides", "Swap the two sides", "Compare", "swap"),
    Key("sides.write", "w", "write", "sides", "Type a strategy as side B, or both sides", "Compare", "type"),
    Key("sides.sweep", "S", "sweep", "sides", "Try many strategies on the run of side A", "Compare", "sweep"),
    Key("compare.plot", "P", "plot", "compare", "Tokens and cost over the calls, as a plot", "Compare", "plot"),
    Key("compare.sweep", "S", "sweep", "compare", "Try many strategies on this run", "Compare", "sweep"),
    Key(
        "compare.export", "X", "export", "compare", "Write the comparison to an HTML or JSON file", "Compare", "export"
    ),
    Key(
        "candidates.choose",
        "c",
        "choose",
        "candidates",
        "Choose this candidate, where the run waits for you",
        "Candidates",
        "choose",
    ),
    Key("candidates.answer", "a", "answer", "candidates", "Answer what else the run asks you", "Candidates", "answer"),
    Key("candidates.reject", "X", "reject", "candidates", "Reject all: the phase fails", "Candidates", "reject all"),
    Key("candidates.outputs", "d", "beside('outputs')", "candidates", "Two outputs side by side", "Candidates", "diff"),
    Key(
        "candidates.prompts",
        "D",
        "beside('prompts')",
        "candidates",
        "Two prompts side by side",
        "Candidates",
        "prompts",
    ),
    Key(
        "candidates.mark",
        "space",
        "mark",
        "candidates",
        "Mark the one to compare others with",
        "Candidates",
        "mark",
    ),
    Key(
        "candidates.why",
        "v",
        "evaluation",
        "candidates",
        "What the evaluator was asked and said",
        "Candidates",
        "evaluator",
    ),
    Key("candidates.plot", "P", "plot", "candidates", "Quality against cost as a plot", "Candidates", "plot"),
    Key("candidates.context", "i", "context", "candidates", "Its newest call in the Bench", "Candidates", "context"),
    Key(
        "candidates.next", _NEXT, "contest(1)", "candidates", "Candidates of the next phase", "Candidates", "next phase"
    ),
    Key(
        "candidates.previous", _PREVIOUS, "contest(-1)", "candidates", "Candidates of the previous phase", "Candidates"
    ),
    Key("sweep.stop", "x", "stop", "sweep", "Stop; finished results stay", "Sweep", "stop"),
    Key("sweep.mark", "space", "mark", "sweep", "Mark a strategy to run live", "Sweep", "mark"),
    Key("sweep.live", "L", "live", "sweep", "Run the marked strategies live; shows the cost first", "Sweep", "live"),
    Key("sweep.plot", "P", "plot", "sweep", "Tokens against cost as a plot", "Sweep", "plot"),
)

BREAKPOINT_KEYS: tuple[Key, ...] = (
    Key("breakpoints.add", "a", "add", "breakpoints", "Add a breakpoint", "Breakpoints", "add"),
    Key("breakpoints.edit", "e", "edit", "breakpoints", "Edit the breakpoint", "Breakpoints", "edit"),
    Key(
        "breakpoints.disable",
        "space",
        "disable",
        "breakpoints",
        "Disable the breakpoint, or enable it again",
        "Breakpoints",
        "disable",
    ),
    Key("breakpoints.delete", "d,delete", "delete", "breakpoints", "Delete the breakpoint", "Breakpoints", "delete"),
)

PLOT_KEYS: tuple[Key, ...] = (
    Key("plot.export", "X", "export", "plot", "Save the plot as a picture: SVG or PNG", "Sheet", "export"),
)

FLOW_KEYS: tuple[Key, ...] = (
    Key("flow.left", "left,h", "side('left')", "flow", "The node at the left", "Flow", "left"),
    Key("flow.right", "right,l", "side('right')", "flow", "The node at the right", "Flow", "right"),
    Key("flow.outline", "v", "outline", "flow", "From the drawing to the outline and back", "Flow", "outline"),
)

SIDE_CONTEXTS: dict[str, tuple[str, ...]] = {
    "compare": ("list", "sheet"),
    "sides": ("list", "sheet"),
    "candidates": ("list", "sheet"),
    "sweep": ("list", "sheet"),
    "breakpoints": ("list", "sheet"),
    "flow": ("list", "sheet"),
    "plot": ("list", "sheet"),
}
"""For ``CONTEXTS``."""


EDIT_KEYS: tuple[Key, ...] = (
    Key(
        "edit.save",
        "ctrl+s",
        "save",
        "edit",
        "Review the edits; from there they are made",
        "Edit",
        "review",
        priority=True,
    ),
    Key("edit.close", "escape", "close", "edit", "From the text to the list; from there back", "Edit", "back"),
    Key("edit.add", "a", "add", "edit", "Write a new message below this one", "Edit", "add"),
    Key("edit.drop", "d,delete", "drop", "edit", "Drop the message from the request", "Edit", "drop"),
    Key("edit.up", "K,alt+up", "move(-1)", "edit", "Move the message up", "Edit", "up"),
    Key("edit.down", "J,alt+down", "move(1)", "edit", "Move the message down", "Edit", "down"),
    Key("edit.role", "r", "role", "edit", "Give the message the next role", "Edit", "role"),
    Key("edit.request", "m", "request", "edit", "Model and parameters, with prices", "Edit", "model"),
    Key("edit.state", "s", "state", "edit", "Write a new state value", "Edit", "state"),
    Key(
        "edit.error", "exclamation_mark", "error", "edit", "Mark the tool's result as an error, or not", "Edit", "error"
    ),
    Key("edit.undo", "u", "undo", "edit", "Undo the last edit", "Edit", "undo"),
    Key("edit.redo", "U", "redo", "edit", "Redo the edit", "Edit", "redo"),
    Key("edit.copy", "y", "copy", "edit", "Copy the text under the cursor", "Edit"),
    Key(
        "edit.external", "ctrl+e,f4", "external", "edit", "Write the text in $EDITOR", "Edit", "$EDITOR", priority=True
    ),
    Key("edit.pane", "f6", "pane", "edit", "From the list to the text and back", "Edit", "text", priority=True),
    Key(
        "run.playground",
        "P",
        "playground",
        "bench",
        "Send the selected call again: the playground",
        "Run",
        "playground",
    ),
    Key("playground.send", "r", "send", "playground", "Send the request to the models", "Playground", "send"),
    Key("playground.stop", "x", "stop", "playground", "Stop the calls that are running", "Playground", "stop"),
    Key("playground.edit", "e,E", "edit", "playground", "Edit the request", "Playground", "edit"),
    Key("playground.models", "m", "settings", "playground", "Models, samples and budget", "Playground", "models"),
    Key("playground.fork", "F", "fork", "playground", "Make this a fork of the run", "Playground", "fork"),
    Key("playground.prompt", "w", "prompt", "playground", "Write the prompt into the file", "Playground", "to file"),
    Key("playground.right", "right_square_bracket", "columns(1)", "playground", "Models further right", "Playground"),
    Key("playground.left", "left_square_bracket", "columns(-1)", "playground", "Models further left", "Playground"),
    Key("playground.copy", "y", "copy", "playground", "Copy the answer", "Playground", "copy"),
    Key("playground.pane", "tab", "pane", "playground", "From the list to the answers and back", "Playground"),
    Key("playground.close", "escape,q", "close", "playground", "Stop the calls; else back", "Playground", "back"),
    Key("review.send", "ctrl+s", "send", "review", "Make the edits", "Edit", "make the edits"),
)

EDIT_CONTEXTS: dict[str, tuple[str, ...]] = {
    "edit": ("app", "list", "text", "find"),
    "review": ("list", "sheet", "diff"),
    "playground": ("list", "find"),
}
"""For ``CONTEXTS``."""

EDIT_FOOTERS: dict[str, tuple[str, ...]] = {
    "edit": (
        "list.open",
        "edit.save",
        "edit.close",
        "edit.add",
        "edit.drop",
        "edit.undo",
        "edit.redo",
        "edit.request",
        "edit.up",
        "edit.role",
        "edit.external",
        "edit.state",
        "edit.error",
    ),
    "playground": (
        "playground.send",
        "playground.close",
        "playground.edit",
        "playground.models",
        "playground.fork",
        "playground.prompt",
        "list.open",
        "playground.stop",
        "playground.copy",
    ),
    "edit text": ("edit.save", "edit.close", "text.undo", "edit.external"),
}
"""For ``FOOTERS``."""


KEYS: tuple[Key, ...] = (
    Key(
        "run.over",
        "n,f10",
        "step('over')",
        "bench",
        "Step to the next call; in a graph to the next node or task",
        "Run",
        "step",
    ),
    Key(
        "run.into",
        "i,f11",
        "step('into')",
        "bench",
        "Step to the next stop at any depth: into turns, branches, children",
        "Run",
        "into",
    ),
    Key("run.out", "o", "out", "bench", "Step out of this phase; from a nested run, look at its caller", "Run", "out"),
    Key("run.step_out", "shift+f11,f23", "step('out')", "bench", "Step to the end of this phase", "Run"),
    Key(
        "run.continue",
        "c,f5",
        "step('continue')",
        "bench",
        "Continue to the next breakpoint or the end",
        "Run",
        "continue",
    ),
    Key("run.pause", "space", "pause", "bench", "Pause at the next stop; continue a paused run", "Run", "pause"),
    Key("run.start", "r", "start", "bench", "Start a new run of the file as it is now", "Run", "run"),
    Key("run.inputs", "I", "inputs", "bench", "Change the inputs of the next run, and save them", "Run", "inputs"),
    Key("run.stop", "x", "stop", "bench", "Stop the run; it can be resumed", "Run", "stop"),
    Key("run.answer", "a", "answer", "bench", "Answer the question that the run asks you", "Run", "answer"),
    Key(
        "run.breakpoint",
        "f9",
        "breakpoint",
        "bench",
        "Set or clear a breakpoint at the selected phase or turn at once",
        "Run",
        "break",
    ),
    Key(
        "run.condition",
        "b,B",
        "breakpoint_prompt",
        "bench",
        "Set or clear a breakpoint: here, or by phase, turn, edge, outcome, tool, condition",
        "Run",
        "break",
    ),
    Key(
        "run.breakpoints",
        "s",
        "breakpoints",
        "bench",
        "List the breakpoints: edit, disable or delete them",
        "Run",
        "breakpoints",
    ),
    Key(
        "run.again",
        "R",
        "rerun",
        "bench",
        "Run the file again, keeping the answers of unchanged calls",
        "Run",
        "re-run",
    ),
    Key(
        "run.edit", "E", "edit_held", "bench", "Edit the request, call or result where the run is paused", "Run", "edit"
    ),
    Key("run.feedback", "S", "feedback", "bench", "Send feedback to the running phase", "Run", "say"),
    Key("run.fork", "F", "fork", "bench", "A new run from before the selected call", "Run", "fork"),
    Key("run.freeze", "t", "freeze", "bench", "Freeze the run as a test", "Run", "freeze"),
    Key("found.next", "n", "match(1)", "found", "The next match, while a search is marked", "Look", "next match"),
    Key("found.previous", "N", "match(-1)", "found", "The previous match", "Look", "previous"),
    Key("view.flow", "v", "flow", "bench", "The flow: the graph of phases, with the walk on it", "Look", "flow"),
    Key("view.previous", "left_square_bracket", "call(-1)", "bench", "Show the previous call", "Look", "previous call"),
    Key(
        "view.next",
        "right_square_bracket",
        "call(1)",
        "bench",
        "Show the next call; the last one follows the run",
        "Look",
        "next call",
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
    Key(
        "view.ways",
        "W",
        "detail('ways')",
        "bench",
        "Why this edge was taken, and the others were not",
        "Look",
        "why edge",
    ),
    Key(
        "view.wire",
        "w",
        "detail('wire')",
        "bench",
        "The request on the wire as a JSON tree, then raw",
        "Look",
        "wire",
    ),
    Key("view.diff", "d", "compare", "bench", "Mark what differs from the previous call of this phase", "Look", "diff"),
    Key("view.strategies", "D", "strategies", "bench", "Compare two context strategies on this run", "Look", "compare"),
    Key(
        "view.candidates", "C", "candidates", "bench", "Candidates side by side: who won and why", "Look", "candidates"
    ),
    Key("view.full", "m", "full", "bench", "Messages in full, or as sent; Markdown drawn, or raw", "Look", "full"),
    Key("view.dropped", "u", "unfold", "bench", "Unfold or fold what was dropped", "Look"),
    Key("view.find", "slash", "find", "bench", "Find in the pane with the focus", "Look", "find"),
    Key("view.again", "f3", "find_again", "bench", "Find the same text further down", "Look"),
    Key("view.before", "shift+f3,f15", "find_again(-1)", "bench", "Find the same text further up", "Look"),
    Key("view.filter", "f", "filter", "bench", "Show only rows with a text", "Look", "filter"),
    Key("view.clear", "escape", "clear", "bench", "Clear filter or search; else close zoom, why or wire", "Look"),
    Key("view.copy", "y", "copy", "bench", "Copy the row or message to the clipboard", "Look", "copy"),
    Key("view.edit", "e", "edit", "bench", "Edit the file at this place", "Look", "edit"),
    Key("view.external", "f4", "edit(True)", "bench", "Open the file at this place in $EDITOR", "Look"),
    Key("pane.next", "tab", "pane(1)", "bench", "Go to the next pane", "Panes"),
    Key("pane.previous", "shift+tab", "pane(-1)", "bench", "Go to the previous pane", "Panes"),
    Key("pane.zoom", "z", "zoom", "bench", "Give the pane the whole screen, or give it back", "Panes", "zoom"),
    Key("pane.narrower", "alt+left", "resize('width', -4)", "bench", "Make the tree narrower", "Panes"),
    Key("pane.wider", "alt+right", "resize('width', 4)", "bench", "Make the tree wider", "Panes"),
    Key("pane.higher", "alt+up", "resize('height', 2)", "bench", "Make the lower pane higher", "Panes"),
    Key("pane.lower", "alt+down", "resize('height', -2)", "bench", "Make the lower pane lower", "Panes"),
    Key("pane.jump", "ctrl+o", "jump", "bench", "Jump to a pane by its letter", "Panes"),
    Key("tabs.next", "right_curly_bracket", "show_tab(1)", "bench", "Show the next open run", "Panes", "next run"),
    Key("tabs.previous", "left_curly_bracket", "show_tab(-1)", "bench", "Show the previous open run", "Panes"),
    Key("tabs.close", "X", "close_tab", "bench", "Close the tab; asks while its run is active", "Panes", "close"),
    Key("tab.log", "1", "tab('log')", "bench", "The log: what happened, line by line", "Panes"),
    Key("tab.problems", "2", "tab('problems')", "bench", "Problems of the file and of the run", "Panes"),
    Key("tab.state", "3", "tab('state')", "bench", "The state of the run", "Panes"),
    Key("tab.output", "4", "tab('output')", "bench", "The output of the run and its phases", "Panes"),
    Key("tab.events", "5", "tab('events')", "bench", "The journal: every event as it is stored", "Panes"),
    Key("tab.timeline", "6", "tab('timeline')", "bench", "The timeline: calls, tools and pauses as bars", "Panes"),
    Key("tab.watched", "7", "watched", "bench", "Of a watched program: what-if costs, and what it prints", "Panes"),
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
    Key("tree.fold", "left,h", "fold", "tree", "Fold the branch, or go to its parent", "Move", "fold"),
    Key("tree.unfold", "right,l", "unfold", "tree", "Unfold the branch, or go into it", "Move", "unfold"),
    Key(
        "sheet.close",
        "escape,q",
        "close",
        "sheet",
        "Clear a filter or search; else back to the Bench",
        "Sheet",
        "back",
    ),
    Key("sheet.find", "slash", "find", "sheet", "Find in the text", "Sheet", "find"),
    Key("sheet.again", "n", "find_again(1)", "sheet", "The next place", "Sheet", "next"),
    Key("sheet.before", "N", "find_again(-1)", "sheet", "The previous place", "Sheet"),
    Key("sheet.filter", "f", "filter", "sheet", "Show only rows with a text", "Sheet", "filter"),
    Key("sheet.copy", "y", "copy", "sheet", "Copy the whole text, or the path of an image", "Sheet", "copy"),
    *MESSAGE_KEYS,
    *DIFF_KEYS,
    *SIDE_KEYS,
    *BREAKPOINT_KEYS,
    *FLOW_KEYS,
    *PLOT_KEYS,
    *REVIEW_KEYS,
    *ROOM_KEYS,
    *ANNOTATION_KEYS,
    *RUN_KEYS,
    *FORM_KEYS,
    *EDIT_KEYS,
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
    Key(
        "dialog.interrupt",
        "ctrl+c",
        "interrupt",
        "dialog",
        "Copy selected text; else close, and stop the run that asks",
        "Dialogs",
        priority=True,
    ),
    Key("app.palette", "ctrl+p", "command_palette", "app", "Run any command by name", "Workbench", "palette"),
    Key("app.help", "question_mark,f1", "help", "app", "Keys and signs", "Workbench", "help"),
    Key("app.screenshot", "f7", "save_screen", "app", "Save the screen as an SVG picture", "Workbench"),
    Key("app.theme", "f2", "next_theme", "app", "The next colour theme", "Workbench"),
    Key("app.interrupt", "ctrl+c", "interrupt", "app", "Copy selected text; else stop the run; else quit", "Workbench"),
    Key("app.suspend", "ctrl+z", "suspend_process", "app", "Back to the shell; fg returns", "Workbench"),
    Key("app.quit", "q", "leave", "app", "Quit; asks while a run is active", "Workbench", "quit"),
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
    **SIDE_CONTEXTS,
    **ROOM_CONTEXTS,
    **ANNOTATION_CONTEXTS,
    **RUN_CONTEXTS,
    **FORM_CONTEXTS,
    **REVIEW_CONTEXTS,
    **MESSAGE_CONTEXTS,
    **EDIT_CONTEXTS,
}
"""Contexts whose keys work at the same time: a key may not have two meanings in them. Those of ``found`` win over all
others while matches of a search are marked.
"""

FOOTERS: dict[str, tuple[str, ...]] = {
    "idle": ("run.over", "run.start", "run.inputs", "run.condition", "view.edit"),
    "held": (
        "run.over",
        "run.into",
        "run.out",
        "run.continue",
        "run.stop",
        "run.edit",
        "run.fork",
    ),
    "running": ("run.pause", "run.stop", "run.feedback"),
    "asked": ("run.answer", "run.stop"),
    "unfinished": ("run.continue", "run.over", "run.start", "run.fork"),
    "done": ("run.start", "run.again", "run.freeze", "run.fork"),
    **ROOM_FOOTERS,
    **RUN_FOOTERS,
    **EDIT_FOOTERS,
}
"""Keys that the footer offers in each situation, the most useful first; it shows as many as there is room for."""

PANE_FOOTERS: dict[str, tuple[str, ...]] = {
    "tree": (
        "view.previous",
        "view.next",
        "tree.fold",
        "tree.unfold",
        "view.ways",
        "run.condition",
        "view.find",
        "pane.zoom",
    ),
    "context": (
        "view.why",
        "list.open",
        "view.previous",
        "view.next",
        "view.wire",
        "view.diff",
        "view.full",
        "view.strategies",
        "view.copy",
        "view.find",
    ),
    "detail": ("view.wire", "view.why", "view.full", "view.copy", "list.open", "view.find", "pane.zoom"),
    "dock": ("list.open", "view.find", "view.filter", "view.copy", "pane.zoom"),
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


def hints(ids: Iterable[str], table: Iterable[Key] = KEYS) -> tuple[tuple[str, str, str], ...]:
    """``(command, key, word)`` for a footer."""
    by_id = {key.id: key for key in table}
    return tuple((id, display(by_id[id].keys), by_id[id].short) for id in ids)


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
