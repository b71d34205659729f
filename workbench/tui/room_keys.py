"""The keys of the rooms beside the Bench: editor, SQL console, settings. A part of the one table in ``keys.py``."""

from __future__ import annotations

from workbench.tui.key import Key

EDITOR_KEYS: tuple[Key, ...] = (
    Key(
        "editor.save", "ctrl+s", "save", "editor", "Save the file; never over somebody else's change", "Editor", "save"
    ),
    Key(
        "editor.complete",
        "ctrl+space,ctrl+@",
        "complete",
        "editor",
        "Offer what may be written here",
        "Editor",
        "complete",
        priority=True,
    ),
    Key("editor.next", "f8", "problem(1)", "editor", "Go to the next problem", "Editor", "next problem"),
    Key("editor.previous", "shift+f8", "problem(-1)", "editor", "Go to the problem before", "Editor"),
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
)

FIND_KEYS: tuple[Key, ...] = (
    Key("find.text", "slash", "find", "find", "Find in the list with the focus", "Lists", "find"),
    Key("find.again", "N", "find_again", "find", "Find the same text further down", "Lists"),
    Key("find.before", "P", "find_again(-1)", "find", "Find the same text further up", "Lists"),
    Key("find.filter", "f", "filter", "find", "Show only rows that hold a text", "Lists", "filter"),
)

SQL_KEYS: tuple[Key, ...] = (
    Key("app.sql", "Q", "sql", "app", "The SQL console: questions to all stored runs", "Workbench"),
    Key(
        "sql.ask",
        "f5,ctrl+r",
        "ask",
        "sql",
        "Ask: the selection, else all that is written",
        "SQL",
        "ask",
        priority=True,
    ),
    Key("sql.earlier", "alt+up,ctrl+up", "history(1)", "sql", "The question before", "SQL", "before", priority=True),
    Key("sql.later", "alt+down,ctrl+down", "history(-1)", "sql", "The question after", "SQL", priority=True),
    Key(
        "sql.pane",
        "f6",
        "pane",
        "sql",
        "From the question to the answer, to the tables",
        "SQL",
        "tables",
        priority=True,
    ),
    Key("sql.right", "right_square_bracket", "columns(1)", "sql", "Columns further right", "SQL", "columns"),
    Key("sql.left", "left_square_bracket", "columns(-1)", "sql", "Columns further left", "SQL"),
    Key("sql.save", "ctrl+s", "save", "sql", "Write the answer to a .csv, .json or .parquet file", "SQL", "save"),
    Key(
        "sql.close",
        "escape",
        "close",
        "sql",
        "Cancel a question that is going; drop a filter or a search; else back",
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
    Key("settings.filter", "slash,f", "filter", "settings", "Show only rows that hold a text", "Settings", "filter"),
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
    Key("settings.unset", "x", "unset", "settings", "Take the value out of the file that sets it", "Settings", "unset"),
    Key("settings.external", "f4", "external", "settings", "Open your own file in $EDITOR", "Settings", "$EDITOR"),
    Key("settings.close", "escape,q", "close", "settings", "Drop the filter; else back", "Settings", "back"),
)

ROOM_KEYS: tuple[Key, ...] = (*FIND_KEYS, *EDITOR_KEYS, *SQL_KEYS, *SETTINGS_KEYS)

ROOM_CONTEXTS: dict[str, tuple[str, ...]] = {
    "find": ("app", "list", "home", "snapshots", "sql", "editor", "text"),
    "editor": ("app", "text", "list"),
    "text": ("editor", "sql"),
    "sql": ("app", "text", "list"),
    "settings": ("list",),
}
"""For ``CONTEXTS``."""

ROOM_FOOTERS: dict[str, tuple[str, ...]] = {
    "editor": (
        "editor.save",
        "editor.close",
        "editor.complete",
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
    "sql": ("sql.ask", "sql.close", "sql.pane", "sql.earlier", "list.open", "sql.right", "sql.save"),
}
"""For ``FOOTERS``."""
