"""Brings an edit of a rendered prompt back into the template that it was rendered from: the instructions of a phase in
its file, or the file that they include. What templates put in is told from what the file says."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import regex
from msgspec import Struct

from workbench.context.assembly import Kind
from workbench.engine.journal.state import RunState
from workbench.language.edit import edits
from workbench.language.edit.errors import EditError
from workbench.language.problem import Path as ValuePath
from workbench.workspace.edit_draft import EditDraft
from workbench.workspace.playground import Subject
from workbench.workspace.project import Project
from workbench.workspace.text_file import TextFile

_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
MOST_TOKENS = 4000
"""Number of differing words beyond which a stretch counts as one change: comparing them is quadratic."""
SECONDS = 2.0
"""Time limit for laying a template over what it was rendered to."""
SURE = 12
"""Characters of a literal part that may be told by its words alone, where it stands once."""


class PromptError(Exception):
    """Why an edit cannot be brought into the file, in words."""


class PromptEdit(Struct, frozen=True):
    """A change of a file as text, not made yet."""

    file: TextFile
    shown: str
    """The file as the user names it."""
    after: str
    line: int
    """Of the instructions, from 1."""

    @property
    def before(self) -> str:
        return self.file.text

    def save(self) -> None:
        """Write the file. Raises CannotSave, also if the file changed since the edit was made."""
        self.file.save(self.after)


class _Literal(Struct, frozen=True):
    """A part of a template that stands in the rendered text as it is."""

    template: int
    """Where it begins in the template."""
    rendered: int
    length: int


def prompt_edit(project: Project, run: RunState, subject: Subject, draft: EditDraft) -> PromptEdit:
    """The edit of the file that makes the phase's prompt what the draft made of it. Raises PromptError."""
    before, after = _task(subject, draft)
    if subject.file is None or not subject.file.is_file():
        raise PromptError(f"{run.cascade_file or 'the cascade file'} is not there any more")
    phase = subject.place.phase
    file = _read(subject.file)
    path, template = _instructions(project, subject.file, file.text, phase)
    _, pinned = _instructions(project, subject.file, run.cascade_text, phase)
    shown = project.shown(subject.file)
    if template != pinned:
        raise PromptError(f"the instructions of '{phase}' in {shown} have changed since this run; run it again first")
    if template.startswith("@"):
        return _included(project, subject.file, template, before, after)
    loaded = project.load(subject.file, file.text)
    try:
        text = edits.replace(loaded.source, path, rewritten(template, before, after))
    except EditError as fault:
        raise PromptError(f"{shown}: {fault}") from fault
    return PromptEdit(file, shown, text.removeprefix(file.bom), loaded.source.span(path).line)


def _task(subject: Subject, draft: EditDraft) -> tuple[str, str]:
    """The prompt of the phase as it was rendered, and as it is edited. Raises PromptError."""
    found = [
        row
        for row in draft.rows
        if row.entry is not None
        and row.entry.item.kind is Kind.TASK
        and row.entry.item.place.visit_key == subject.place.visit_key
    ]
    if not found:
        raise PromptError("no message of this request is the phase's instructions")
    changed = next((row for row in found if row.mark == "changed"), None)
    if changed is None or changed.entry is None:
        number = draft.rows.index(found[0]) + 1
        raise PromptError(f"the instructions are not edited: edit message {number} first")
    return changed.entry.item.message.text, changed.message.text


def _read(file: Path) -> TextFile:
    try:
        found = TextFile.read(file)
    except OSError as fault:
        raise PromptError(f"{file}: {fault.strerror}") from fault
    if found.refusal or found.raw is None:
        raise PromptError(f"{file} cannot be changed here: {found.refusal or 'it is not there any more'}")
    return found


def _instructions(project: Project, file: Path, text: str, phase: str) -> tuple[ValuePath, str]:
    """Returns where a text of the cascade has the instructions of a phase, and what they are. Raises PromptError."""
    loaded = project.load(file, text)
    names = [each.name for each in loaded.cascade.phases] if loaded.cascade is not None else []
    if phase not in names or loaded.cascade is None:
        raise PromptError(f"{project.shown(file)} has no phase '{phase}' that could be read")
    index = names.index(phase)
    return ("phases", index, "instructions"), loaded.cascade.phases[index].instructions or ""


def _included(project: Project, file: Path, template: str, before: str, after: str) -> PromptEdit:
    """The same for instructions that a file holds which the cascade includes."""
    included = (file.parent / template[1:].strip()).resolve()
    if not included.is_relative_to(project.root):
        raise PromptError(f"{template} lies outside of the workspace")
    found = _read(included)
    return PromptEdit(found, project.shown(included), rewritten(found.text, before, after), 1)


# -- from what was rendered back to the template -----------------------------------------------------------------------


def rewritten(template: str, before: str, after: str) -> str:
    """The template that renders to ``after`` where it rendered to ``before``. Raises PromptError for a change in what
    an expression put in, or of text that cannot be found in the template for certain."""
    literals = _literals(template, before)
    changed = template
    for start, end, new in reversed(list(_hunks(before, after))):
        if _TAG.search(new) or "{{" in new or "{%" in new:
            raise PromptError("the new text holds '{{' or '{%', which the file would read as a template")
        home = _home(literals, start, end)
        if home is None:
            snippet = before[start:end].strip() or new.strip() or "white space"
            short = snippet if len(snippet) <= 60 else snippet[:57] + "…"
            raise PromptError(f"'{short}' is not text of the file: a template or the workbench put it there")
        at = home.template + start - home.rendered
        changed = changed[:at] + new + changed[at + end - start :]
    return changed


def _home(literals: Sequence[_Literal], start: int, end: int) -> _Literal | None:
    """The literal part that a stretch of the rendered text lies in; for an insertion, one that it touches."""
    inside = [one for one in literals if one.rendered <= start and end <= one.rendered + one.length]
    return max(inside, key=lambda one: one.length, default=None)


def _literals(template: str, rendered: str) -> list[_Literal]:
    """The parts of a template that stand in what it was rendered to, each with both places."""
    parts = list(_parts(template))
    if all(not tag.startswith("{%") for tag, _, _ in parts if tag) and (found := _laid_over(parts, rendered)):
        return found
    known: list[_Literal] = []
    for tag, text, at in parts:
        core = text.strip()
        if not tag and len(core) >= SURE and rendered.count(core) == 1 and template.count(core) == 1:
            known.append(_Literal(at + text.index(core), rendered.index(core), len(core)))
    return known


def _parts(template: str) -> Iterator[tuple[str, str, int]]:
    """Tags and the texts between them, in order: ``(tag, "", at)`` or ``("", text, at)``."""
    at = 0
    for tag in _TAG.finditer(template):
        if tag.start() > at:
            yield "", template[at : tag.start()], at
        yield tag[0], "", tag.start()
        at = tag.end()
    if at < len(template):
        yield "", template[at:], at


def _laid_over(parts: Sequence[tuple[str, str, int]], rendered: str) -> list[_Literal]:
    """The literal parts by the whole template laid over the text; nothing where it does not fit. A part that could lie
    in two places, because what an expression put in reads like it, is left out."""
    first, last = (_matched(parts, rendered, lazy) for lazy in ("*?", "*"))
    return [one for one in first if one in last]


def _matched(parts: Sequence[tuple[str, str, int]], rendered: str, repeat: str) -> list[_Literal]:
    """The literal parts where expressions put in as little, or as much, as fits."""
    pattern: list[str] = []
    for number, (tag, text, _) in enumerate(parts):
        last = number == len(parts) - 1
        if tag:
            pattern.append("" if tag.startswith("{#") else f"(?s:.{repeat})")
        else:
            # A renderer leaves out one line break at the end of a template.
            pattern.append(f"(?P<t{number}>{regex.escape(text[:-1] if last and text.endswith(chr(10)) else text)})")
    # What stands behind the template, after an empty line, is the workbench's own.
    ends = r"(?:\n\n(?s:.*))?" if parts and not parts[-1][0] else "(?s:.*)"
    try:
        found = regex.fullmatch("".join(pattern) + r"\n?" + ends, rendered, timeout=SECONDS)
    except TimeoutError:
        return []
    if found is None:
        return []
    return [
        _Literal(at, found.start(f"t{number}"), found.end(f"t{number}") - found.start(f"t{number}"))
        for number, (tag, _, at) in enumerate(parts)
        if not tag
    ]


def _hunks(before: str, after: str) -> Iterator[tuple[int, int, str]]:
    """Yields the differences, word by word: stretches of ``before`` and their replacements."""
    shortest = min(len(before), len(after))
    head = next((i for i in range(shortest) if before[i] != after[i]), shortest)
    most = shortest - head
    tail = next((i for i in range(most) if before[-1 - i] != after[-1 - i]), most)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    if max(len(a), len(b)) > MOST_TOKENS:
        yield head, head + len(old), new
        return
    starts = [head]
    for token in a:
        starts.append(starts[-1] + len(token))
    for tag, a1, a2, b1, b2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            yield starts[a1], starts[a2], "".join(b[b1:b2])
