"""From a value of the model to its place in the file, and from there to a finding."""

from __future__ import annotations

import json
import re

from msgspec import Struct

from workbench.language import diagnose
from workbench.language.clean import clean_line
from workbench.language.lint.catalogue import CATALOGUE
from workbench.language.model.cascade import Phase
from workbench.language.problem import Path, Problem, TextSpan
from workbench.language.read.source import Source

_LINE_END = re.compile(r"\r\n?|\n")
_LONGEST = 120
"""Characters of a name or a reason that a message shows."""


class Places:
    """The places of one file."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def written(self, path: Path) -> Path:
        """The path as the file writes it: accepted spellings undone, cut at a short form."""
        return diagnose.written(self.source.data, path)

    def replacement(self, span: TextSpan, text: str) -> str:
        """``text`` as it would replace the value at ``span``: in the same quotes, or in none."""
        line = self.source.line_text(span.line)
        quote = line[span.column - 1 : span.column]
        if quote == '"':
            return json.dumps(text, ensure_ascii=False)
        if quote == "'":
            return "'" + text.replace("'", "''") + "'"
        return text if text.replace("_", "").replace("-", "").isalnum() else json.dumps(text, ensure_ascii=False)

    def report(
        self,
        code: str,
        path: Path,
        *,
        at_key: bool = False,
        span: TextSpan | None = None,
        hint: str | None = None,
        instead: str | None = None,
        fix: str | None = None,
        **words: object,
    ) -> Problem:
        """A finding of the catalogue at a path of keys, whatever spelling or short form the file has there.

        ``words`` fill in the row's message and hint; ``hint`` replaces the row's; ``instead`` is the name that would
        be right in place of the one at the span: it becomes the fix, and the hint asks whether it was meant. ``fix``
        is the same without the question. ``span`` is a stretch inside a text value.
        """
        row, inside = CATALOGUE[code], span is not None
        at = self.written(path)
        if span is None:
            span = self.source.key_span(at) if at_key else self.source.span(at)
        words = {name: clean_line(str(word), _LONGEST) for name, word in words.items()}
        if instead is not None:
            hint = f"did you mean '{clean_line(instead, _LONGEST)}'?"
        elif hint is None:
            hint = row.hint.format(**words)
        fix = instead or fix
        return Problem(
            row.severity,
            code,
            row.message.format(**words),
            self.source.file,
            span,
            at,
            hint,
            fix if fix is None or inside else self.replacement(span, fix),
        )

    def inside(self, path: Path, offset: int, length: int = 1) -> TextSpan:
        """The stretch of the file that ``offset`` of a text value stands for."""
        at = self.written(path)
        value = self.source.data
        for step in at:
            value = value[step]
        lines = _LINE_END.split(str(value)[:offset])
        return self.source.inner_span(at, len(lines), len(lines[-1]) + 1, length)


class PhaseAt(Struct, frozen=True):
    """A phase with its place."""

    phase: Phase
    path: Path
    host: str = ""
    """The phase of the list that it stands in for, if it is written in place as ``on_error``."""

    @property
    def name(self) -> str:
        """Its name in the walk: its own, or its host's."""
        return self.host or self.phase.name
