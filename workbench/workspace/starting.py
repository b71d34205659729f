"""New cascades from templates: the templates, and the files that each becomes."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from workbench.resources import folder
from workbench.workspace.input_file import CannotOpen

ENDINGS = (".yaml", ".yml")
_ID = re.compile(r"[^A-Za-z0-9_-]+")


class CascadeTemplate(Struct, frozen=True):
    """A cascade to begin with."""

    name: str
    about: str
    """A description in a few words, for lists."""


CASCADE = "cascade.template"
"""The cascade among the files of a template; its ending says that it is none before it is filled in."""

TEMPLATES = (
    CascadeTemplate("call", "one call to a model"),
    CascadeTemplate("agent", "an agent that uses tools, turn by turn"),
    CascadeTemplate("router", "one phase decides which of two follows"),
    CascadeTemplate("checks", "answers are checked, and sent back with the reason"),
    CascadeTemplate("candidates", "several answers, and an evaluator that picks one"),
    CascadeTemplate("approval", "a person decides before it is final"),
    CascadeTemplate("batch", "a run for each row of a list, and a summary"),
)
BY_NAME = {template.name: template for template in TEMPLATES}


def files_of(template: str, target: Path, shown: str) -> dict[Path, str]:
    """The files that a template becomes beside ``target``, the cascade first, with their texts; ``shown`` is how a
    command names the target. Raises KeyError for an unknown template, CannotOpen for a name of another kind of
    file."""
    source = folder("templates") / BY_NAME[template].name
    if target.suffix not in ENDINGS or target.name.endswith(".replies.yaml"):
        raise CannotOpen(f"{target.name}: error: a cascade file ends with .yaml")
    values = {"@FILE@": shown, "@NAME@": target.stem, "@ID@": _ID.sub("_", target.stem).strip("_") or "cascade"}
    files: dict[Path, str] = {}
    for path in sorted(source.iterdir(), key=lambda path: (path.name != CASCADE, path.name)):
        name = target.name if path.name == CASCADE else f"{target.stem}.{path.name}"
        text = path.read_text("utf-8")
        for token, value in values.items():
            text = text.replace(token, value)
        files[target.with_name(name)] = text
    return files


def create(template: str, target: Path, shown: str) -> tuple[Path, ...]:
    """Write a template's files, all or none; never over a file that is there. Returns them, the cascade first.

    Raises KeyError for an unknown template, CannotOpen which says what is in the way."""
    files = files_of(template, target, shown)
    written: list[Path] = []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotOpen(f"{target}: error: cannot be written: {error.strerror}") from error
    try:
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except FileExistsError as error:
        _undo(written)
        raise CannotOpen(f"{error.filename}: error: there is a file of that name already") from error
    except OSError as error:
        _undo(written)
        raise CannotOpen(f"{target}: error: cannot be written: {error.strerror}") from error
    return tuple(files)


def free_name(name: str, where: Path) -> str:
    """``NAME.yaml``, with a number if the folder already has that file."""
    tries = (f"{name}{number}.yaml" for number in ("", *range(2, 1000)))
    return next((each for each in tries if not (where / each).exists()), f"{name}.yaml")


def _undo(written: list[Path]) -> None:
    for path in written:
        path.unlink(missing_ok=True)
