"""The user's own editor: which program it is, and how it is told the line."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

VIM = ("+call cursor({line}, {column})", "{file}")
PLUS = ("+{line}", "{file}")
NANO = ("+{line},{column}", "{file}")
EMACS = ("+{line}:{column}", "{file}")
GOTO = ("--wait", "--goto", "{file}:{line}:{column}")
COLONS = ("{file}:{line}:{column}",)
WAITING = ("--wait", "{file}:{line}:{column}")
KATE = ("--block", "--line", "{line}", "--column", "{column}", "{file}")
JETBRAINS = ("--wait", "--line", "{line}", "--column", "{column}", "{file}")
PLAIN = ("{file}",)

FORMS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("vim", "nvim", "gvim", "mvim"), VIM),
    **dict.fromkeys(("vi", "view", "nvi", "elvis", "vis", "mg", "joe", "jed", "ne", "gedit", "xed", "mousepad"), PLUS),
    **dict.fromkeys(("nano", "pico", "rnano"), NANO),
    **dict.fromkeys(("emacs", "emacsclient", "kak", "micro"), EMACS),
    **dict.fromkeys(("code", "code-insiders", "codium", "vscodium", "cursor", "windsurf"), GOTO),
    **dict.fromkeys(("hx", "helix", "mcedit"), COLONS),
    **dict.fromkeys(("subl", "zed", "zeditor"), WAITING),
    "kate": KATE,
    **dict.fromkeys(("idea", "pycharm", "webstorm"), JETBRAINS),
}
"""Arguments by the name of the program; any other one is given the file alone."""


class NoEditor(Exception):
    """There is no editor to start; the message says what to set."""


def editor_command(env: Mapping[str, str], file: Path, line: int, column: int = 1) -> list[str]:
    """The command that opens a file at a place: ``$VISUAL``, else ``$EDITOR``, else ``vi``. Raises NoEditor."""
    variable = next((name for name in ("VISUAL", "EDITOR") if env.get(name, "").strip()), "")
    written = env.get(variable, "").strip() or "vi"
    try:
        words = shlex.split(written)
    except ValueError as fault:
        raise NoEditor(f"${variable} is not a command: {fault}") from None
    found = shutil.which(words[0], path=env.get("PATH"))
    if found is None:
        if not variable:
            raise NoEditor("neither $VISUAL nor $EDITOR is set, and vi is not installed")
        raise NoEditor(f"${variable} is '{written}', and there is no program '{words[0]}'")
    form = FORMS.get(Path(words[0]).name, PLAIN)
    place = {"file": str(file), "line": str(max(1, line)), "column": str(max(1, column))}
    return [found, *words[1:], *(part.format_map(place) for part in form)]
