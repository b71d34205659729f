"""What is wrong with a template, and where in it."""

from __future__ import annotations

import re

from jinja2 import TemplateSyntaxError

from workbench.language.clean import clean_line

_CHARACTER = re.compile(r"(unexpected char .+) at (\d+)", re.DOTALL)
_LINE_END = re.compile(r"\r\n?")


class TemplateFault(Exception):
    """A template that could not be rendered. Line and column are within the template, from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


def syntax_fault(fault: TemplateSyntaxError, template: str) -> TemplateFault:
    """A syntax error with its place."""
    message = fault.message or "syntax error"
    if match := _CHARACTER.fullmatch(message):
        before = _LINE_END.sub("\n", template)[: int(match[2])]
        return TemplateFault(clean_line(match[1]), before.count("\n") + 1, len(before) - before.rfind("\n"))
    line = int(fault.lineno)
    column = getattr(fault.lineno, "column", 0) or first_tag(template, line)
    return TemplateFault(clean_line(message, 300), line, column)


def first_tag(template: str, line: int) -> int:
    """The column of the first tag on a line, or 1."""
    lines = template.splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    found = [at for tag in ("{{", "{%", "{#") if (at := text.find(tag)) >= 0]
    return min(found) + 1 if found else 1
