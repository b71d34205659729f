"""What a review shows of one snapshot: what differs, place by place, with the line of the file and was and is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.engine.changed import ChangedPart
from workbench.tui.rows.cells import Span, flat
from workbench.tui.rows.numbers import plural
from workbench.tui.rows.requests import PART_SIGN
from workbench.tui.rows.signs import sign
from workbench.tui.rows.text import Line, TextRows
from workbench.workspace.reviewing import Section, heading, same_words, sections

if TYPE_CHECKING:
    from workbench.workspace.snapshot_files import Listed
    from workbench.workspace.testing import Verdict

Spans = tuple[Span, ...]


class ReviewRows(TextRows):
    """A snapshot as a document whose rows know what they are about."""

    def __init__(self, listed: Listed, verdict: Verdict | None) -> None:
        self.refs: list[tuple[Section | None, ChangedPart | None]] = []
        found: list[Line] = []
        for line, section, part in _lines(listed, verdict):
            found.append(line)
            self.refs.append((section, part))
        word = heading(verdict) if verdict is not None else listed.kind if listed.problem else "not checked yet"
        super().__init__(found, ((flat(listed.name), "title"), (f"  {word}", _TOKENS.get(word, "dim"))))
        self.title_right = ((f"{flat(listed.cascade_file)} ", "dim"),)

    def section_at(self, row: int) -> Section | None:
        """The place of the run that a row is about."""
        return self.refs[self.line_of(row)][0] if self.refs else None

    def part_at(self, row: int) -> ChangedPart | None:
        """The changed message or setting of a row."""
        return self.refs[self.line_of(row)][1] if self.refs else None

    def line_at(self, row: int) -> int:
        """The line of the cascade file behind a row, else behind its place; 0 for none."""
        part, section = self.part_at(row), self.section_at(row)
        if part is not None and part.rule.line and not part.recorded_rule:
            return part.rule.line
        return section.line if section is not None else 0

    def first(self) -> int:
        """The first row that is about a difference."""
        line = next((i for i, (section, _) in enumerate(self.refs) if section is not None), 0)
        return self.first_row(line)


_TOKENS = {"as frozen": "ok", "changed": "changed", "cannot be replayed": "error", "unreadable": "error"}


def _lines(listed: Listed, verdict: Verdict | None) -> Iterator[tuple[Line, Section | None, ChangedPart | None]]:
    if listed.description:
        yield Line(flat(listed.description), "dim"), None, None
        yield Line(""), None, None
    if verdict is not None and verdict.fault is not None:
        yield _spans((sign("broken"), (f" {flat(str(verdict.fault))}", "error")), 2), None, None
    elif listed.problem:
        yield _spans((sign("warning"), (f" {flat(listed.problem)}", "warning")), 2), None, None
    elif verdict is not None and verdict.passed:
        words = f" All {plural(verdict.calls, 'call')} as frozen."
        yield _spans((sign("done"), (words, "ok")), 2), None, None
    if verdict is not None:
        for section in sections(verdict):
            yield _spans(((section.label, "name"), (f"   {section.said}", "changed")), 2), section, None
            yield from ((line, section, part) for line, part in _of_section(section))
        if same := same_words(verdict):
            yield Line(same, "dim"), None, None
    yield from ((line, None, None) for line in _facts(listed, verdict))


def _of_section(section: Section) -> Iterator[tuple[Line, ChangedPart | None]]:
    for part in section.parts:
        yield _spans((("  ", "plain"), sign(PART_SIGN.get(part.kind, "altered")), *_subject(part)), 6), part
        arrow = (("    ", "plain"), (flat(part.was), "gone"), (" → ", "dim"), (flat(part.now), "added"))
        yield _spans(arrow, 4), part
        if part.rule.line:
            values = f"  {flat(part.rule_words)}" if part.rule_words else ""
            where = (f"    {flat(part.where(section.file))}", "accent")
            yield _spans((where, (values, "changed"), (f"  {flat(part.rule.path)}", "dim")), 4), part
    for one in section.others:
        yield _spans((("  ", "plain"), sign("altered"), (f" {flat(one.words)}", "plain")), 6), None
        for detail in one.details:
            yield Line(f"      {flat(detail)}", "dim", hang=6), None
        if one.rule.line:
            at = f"{section.file}:{one.rule.line}{' as frozen' if one.frozen_rule else ''}"
            yield _spans(((f"    {flat(at)}", "accent"), (f"  {flat(one.rule.path)}", "dim")), 4), None


def _subject(part: ChangedPart) -> Spans:
    """Which message, and what became of it."""
    return ((f" {flat(part.words.partition(': ')[0] if part.kind == 'reworded' else part.words)}", "plain"),)


def _facts(listed: Listed, verdict: Verdict | None) -> Iterator[Line]:
    yield Line("")
    mode = listed.kind if listed.kind in ("strict", "plumbing", "structure") else ""
    replaced = f"{plural(listed.redacted, 'secret')} replaced" if listed.redacted else ""
    facts = [listed.file, mode, listed.captured_at[:19].replace("T", " "), replaced]
    yield Line(" · ".join(flat(fact) for fact in facts if fact), "faint")
    if verdict is not None and verdict.note:
        yield Line(flat(verdict.note), "faint")


def _spans(spans: Spans, hang: int) -> Line:
    """A line of several tokens, wrapped parts ``hang`` cells further in."""
    kept = tuple(span for span in spans if span[0])
    return Line("".join(text for text, _ in kept), paint=lambda _: kept, hang=hang)
