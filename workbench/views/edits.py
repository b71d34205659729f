"""Unsaved edits: the editable parts as rows, and the changes as lines in red and green."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from workbench.engine.gate import StopKind
from workbench.views.cells import Row, Span, crop, fit, flat, justify
from workbench.views.entry import ACTION_SIGN, source_words
from workbench.views.model import Rows
from workbench.views.numbers import count, plural
from workbench.views.requests import aligned
from workbench.views.signs import sign
from workbench.views.text import TextLine, TextRows, text_lines
from workbench.workspace.edit_draft import Change, DraftRow, EditDraft, Part

REQUEST = "request"
"""The key of the row that stands for model and parameters."""
NEW_STATE = "state:"
"""The key of the row that begins a new state value."""
CONTEXT_LINES = 2
"""Equal lines that stand around a change."""
LONGEST = 200_000
"""Characters of a text whose lines are compared; for a longer one only its size is shown."""

_MARK_SIGN = {"changed": "edited", "added": "new", "dropped": "gone", "moved": "moved"}


class Editable(Struct, frozen=True):
    """One row of the list: the key of what it edits, and how it looks."""

    key: str
    part: Part | None
    left: tuple[Span, ...]
    right: tuple[Span, ...] = ()
    tone: str = ""


def editables(draft: EditDraft) -> tuple[Editable, ...]:
    """Everything that can be edited, from the top of the list."""
    rows = draft.rows
    found: list[Editable] = []
    changed = {change.label for change in draft.changes}
    for part in draft.parts:
        name = part.key.partition(":")[0]
        if name == "message":
            found.append(_message(part, rows[part.at]))
        elif name in ("call", "answer-call"):
            found.append(Editable(part.key, part, ((f"       → {flat(part.name, 40)} ", "tool"), _first(part.text))))
        else:
            found.append(_other(part, draft, changed))
    if draft.target.kind is StopKind.BEFORE_CALL and draft.target.draft is not None:
        mark = sign("edited") if "model and parameters" in changed else (" ", "plain")
        told = "  ".join(f"{name}={value}" for name, value in sorted(draft.parameters.items()))
        left: tuple[Span, ...] = (*_margin(mark), (fit("model", 10), "head"), (flat(draft.model), "plain"))
        at = sum(1 for one in found if not one.key.startswith("state:"))
        found.insert(at, Editable(REQUEST, None, (*left, (f"  {flat(told)}", "dim"))))
    if draft.target.has_state:
        found.append(
            Editable(NEW_STATE, None, (*_margin((" ", "plain")), (fit("state", 10), "head"), ("new value …", "faint")))
        )
    return tuple(found)


def _margin(mark: Span) -> tuple[Span, ...]:
    """Returns the margin of a row that has no number: its mark stands below those of the messages."""
    return (("    ", "plain"), mark, (" ", "plain"))


def _first(text: str) -> Span:
    return (flat(text, 400) or "(empty)", "dim" if text.strip() else "faint")


def _message(part: Part, row: DraftRow) -> Editable:
    """A message: its number, what was done to it, role, where it comes from, how it begins; how much of it is sent."""
    gone = row.mark == "dropped" or (row.entry is not None and row.entry.item.edited == "dropped")
    mark = sign(_MARK_SIGN[row.mark]) if row.mark else (" ", "plain")
    source = "new" if row.entry is None else source_words(row.entry, 15)
    role = row.message.role
    left = (
        (fit(str(part.at + 1), 3, "right"), "faint"),
        (" ", "plain"),
        mark,
        (" ", "plain"),
        (fit(role, 10), "faint" if gone else role),
        (fit(source, 15) + " ", "faint" if gone else "plain"),
        _first(part.text or ("(tool call)" if row.message.tool_calls else "")),
    )
    right: tuple[Span, ...] = ()
    entry = row.entry
    if entry is not None and row.mark != "changed":
        full, went = count(entry.tokens_full, entry.grade), count(entry.tokens_sent, entry.grade)
        name = ACTION_SIGN.get(entry.action)
        shortened = entry.sent is not None and entry.tokens_full != entry.tokens_sent
        tokens = f"{full} → {went} " if shortened else f"{full} "
        right = (*((sign(name), (" ", "plain")) if name else ()), (tokens, "masked" if shortened else "faint"))
    tone = {"added": "added", "changed": "changed", "dropped": "gone", "moved": "changed"}.get(row.mark, "")
    return Editable(part.key, part, left, right, tone)


def _other(part: Part, draft: EditDraft, changed: set[str]) -> Editable:
    name, words = part.key.partition(":")[0], ""
    if name == "answer":
        label, marked = "answer", "answer" in changed
    elif name == "arguments":
        label, words, marked = "arguments", flat(part.name, 30), f"arguments of {part.name}" in changed
    elif name == "skip":
        label, words, marked = "skip", f"{flat(part.name, 30)}, with this result", draft.skipped
    elif name == "result":
        label, words = "error" if draft.result_is_error else "result", flat(part.name, 30)
        marked = any(label.startswith(f"result of {part.name}") for label in changed)
    else:
        label, words, marked = "state", flat(part.name, 30), f"state.{part.name}" in changed
    mark = sign("edited") if marked else (" ", "plain")
    text: Span = ("", "plain") if name == "skip" and not draft.skipped else _first(part.text)
    if name == "answer" and draft.target.answerable and not marked:
        text = ("write it yourself: nothing is sent", "faint")
    left = (*_margin(mark), (fit(label, 10), "head"))
    return Editable(part.key, part, (*left, (f"{words}  " if words else "", "name"), text))


class EditableRows(Rows):
    """The list of what can be edited."""

    empty = ("Nothing can be edited here.",)

    def __init__(self, draft: EditDraft, where: str, *, typing: bool = False) -> None:
        """``where``: the stop, or the call, as the title names it. ``typing``: a text differs that is not taken yet."""
        self.found = editables(draft)
        edits = len(draft.edits)
        self.title = (("Edit", "title"), (f"  {flat(where)}", "name"))
        words = plural(edits, "edit") if edits else "" if typing else "no edits yet"
        words += (" · " if words else "") + "writing" if typing else ""
        self.title_right = ((words, "changed" if edits or typing else "dim"),)

    def __len__(self) -> int:
        return len(self.found)

    def row(self, index: int, width: int) -> Row:
        one = self.found[index]
        right = one.right
        room = width - sum(len(text) for text, _ in right) - 1
        return Row(justify(crop(one.left, room), right, width), one.tone)

    def plain(self, index: int) -> str:
        part = self.found[index].part
        return self.row(index, 400).text.strip() if part is None else f"{self.row(index, 100).text} {part.text}"

    def index_of(self, key: str) -> int:
        """The row of a key; 0 if there is none."""
        return next((index for index, one in enumerate(self.found) if one.key == key), 0)


# -- what was changed --------------------------------------------------------------------------------------------------


def change_lines(changes: Sequence[Change]) -> list[TextLine]:
    """A list of changes: what was done, then the differing lines, with a few equal ones around them."""
    lines: list[TextLine] = []
    for change in changes:
        if lines:
            lines.append(TextLine(""))
        glyph, token = sign(_MARK_SIGN[change.what])
        lines.append(TextLine(f"{glyph} {flat(change.label)} · {change.what}", token, tone=""))
        if change.what == "moved":
            lines.append(TextLine(f"  {flat(change.after, 300)}", "dim", hang=2))
        else:
            lines += diff_lines(change.before, change.after)
    return lines


def diff_lines(before: str, after: str) -> list[TextLine]:
    """Two texts as one list of lines: removed ones red, new ones green, differing words within a line marked; equal
    lines far from a change are folded to their number.
    """
    if len(before) + len(after) > LONGEST:
        sizes = f"{len(before):,} characters become {len(after):,}"
        return [TextLine(f"  {sizes}; too long to compare here. It ends:", "dim"), *text_lines(after[-400:], "added")]
    old = text_lines(before, whole=True) if before else []
    new = text_lines(after, whole=True) if after else []
    lines: list[TextLine] = []
    equal: list[TextLine] = []
    gone: list[TextLine] = []
    come: list[TextLine] = []
    for left, right in zip(*aligned(old, new), strict=True):
        if left.text.startswith("  ") and right.text.startswith("  "):
            lines += (*gone, *come)
            gone, come = [], []
            equal.append(left)
            continue
        lines += _folded(equal, first=not lines)
        equal = []
        gone += [left] if left.text else []
        come += [right] if right.text else []
    return [*lines, *gone, *come, *_folded(equal, first=not lines and not gone and not come, last=True)]


def _folded(equal: Sequence[TextLine], *, first: bool, last: bool = False) -> list[TextLine]:
    """Equal lines: all of a few, else those next to a change."""
    head, tail = 0 if first else CONTEXT_LINES, 0 if last else CONTEXT_LINES
    if len(equal) <= head + tail + 1:
        return list(equal)
    between = TextLine(f"  … {plural(len(equal) - head - tail, 'equal line')}", "faint")
    return [*equal[:head], between, *(equal[len(equal) - tail :] if tail else ())]


class ChangeRows(TextRows):
    """The result of edits, over the whole screen."""

    def __init__(self, changes: Sequence[Change], heading: str, note: str = "") -> None:
        """``note``: what the change does to the request, in words."""
        lines = change_lines(changes)
        title = ((heading, "title"), (f"  {plural(len(changes), 'change')}", "name"))
        super().__init__(lines, title, ((note, "changed"),) if note else ())
