"""The lines around the text in the editor: its header, and the meaning of the field under the cursor."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from workbench.language.edit.completion import FieldHelp, Item
from workbench.language.edit.navigate import Definition
from workbench.language.problem import Problem, Severity
from workbench.views.cells import Span, crop, dropping, flat, width_of
from workbench.views.keys import told
from workbench.views.problems import counted
from workbench.views.signs import sign
from workbench.views.text import TextLine, TextRows

_TIERS = {"2·load": "It is kept, and does not run yet.", "W": "An extension of the workbench."}
_TOKENS = {Severity.ERROR: "error", Severity.WARNING: "warning"}


class EditorFacts(Struct, frozen=True):
    """The facts in the header."""

    file: str
    changed: bool = False
    refusal: str = ""
    """Why the file can only be looked at."""
    on_disk: str = ""
    """The change of the file on disk since it was read."""
    problems: Sequence[Problem] = ()
    checked: bool = False
    line: int = 1
    column: int = 1
    found: tuple[int, int] | None = None
    """Which place of the searched text is selected, from 1, and how many there are."""


def editor_header(facts: EditorFacts, width: int) -> tuple[Span, ...]:
    """One line: the file, whether it is saved, its problems, the position of the cursor."""
    parts: list[list[Span]] = [[("editor ", "faint"), (flat(facts.file), "bold")]]
    if facts.refusal:
        parts.append([(f" read-only: {flat(facts.refusal)} ", "held-badge")])
    elif facts.on_disk:
        parts.append([(f" {flat(facts.on_disk)} ", "error-badge")])
    if facts.changed:
        parts.append([sign("changed"), (" not saved", "changed")])
    if found := counted(facts.problems):
        worst, _ = found[0]
        parts.append([(" · ".join(words for _, words in found), _TOKENS.get(worst, "dim"))])
    elif facts.checked:
        parts.append([("✓", "ok"), (" no problems", "ok")])
    right: list[Span] = [(f"{facts.line}:{facts.column} ", "dim")]
    if facts.found is not None:
        right.insert(0, (f"{facts.found[0]:,} of {facts.found[1]:,}   ", "changed"))
    room = width - 2 - width_of(right)
    left = dropping(parts, room)
    return ((" ", "plain"), *left, (" " * max(1, room - width_of(left)), "plain"), *right)


def help_rows(
    found: FieldHelp | None, problems: Sequence[Problem], item: Item | None = None, known: Definition | None = None
) -> TextRows:
    """The problems of the line, then facts about the name under the cursor (``known``), then the field: its type,
    default and meaning. The field comes first while an ``item`` of the completion is selected; ``known`` is then
    about the item.
    """
    wrong: list[TextLine] = []
    for problem in problems:
        token = _TOKENS.get(problem.severity, "dim")
        wrong.append(TextLine(flat(f"{problem.message}  [{problem.code}]"), token, hang=2))
        if problem.hint:
            wrong.append(TextLine(flat(problem.hint), "dim", hang=2))
    title: tuple[Span, ...] = (("Field", "title"),)
    meaning: list[TextLine] = []
    if known is not None and known.about:
        meaning += [TextLine(flat(said, 600), "plain", hang=2) for said in known.about]
        if known.file and item is None:
            meaning.append(TextLine(told("{editor.definition} opens {file}", file=flat(known.file)), "dim", hang=2))
    elif item is not None and item.detail and item.kind != "key":
        meaning.append(TextLine(flat(f"{item.text}: {item.detail}"), "plain"))
    if found is not None:
        title = (("Field", "title"), (f"  {flat(found.path)}", "name"))
        default = f", default {found.default}" if found.default else ""
        meaning.append(TextLine(flat(found.type + default), "accent", hang=2))
        meaning.append(TextLine(flat(found.description)))
        if found.tier in _TIERS:
            meaning.append(TextLine(_TIERS[found.tier], "dim"))
    first, then = (meaning, wrong) if item is not None else (wrong, meaning)
    lines = [*first, *([TextLine("")] if first and then else []), *then]
    empty = ("No field of the language here.",) if not lines else ()
    return TextRows(lines, tuple(crop(title, 200)), empty=empty)
