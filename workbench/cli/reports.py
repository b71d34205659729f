"""Findings for other programs: SARIF for code scanning, JUnit XML for CI servers, annotations for GitHub Actions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import click
from msgspec import Struct

from workbench.language.clean import clean, clean_line
from workbench.language.problem import Problem, Severity

_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SARIF_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_GITHUB_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 cannot hold, section 2.2 of its specification."""


class Case(Struct, frozen=True):
    """One test of a JUnit report: a checked file, or a replayed snapshot."""

    name: str
    file: str
    failures: tuple[str, ...] = ()
    """The findings in words; empty if the test passed."""
    notes: tuple[str, ...] = ()
    """Warnings, which do not fail the test."""
    skipped: str = ""
    """Why the test was not run; empty if it was."""


def message_of(problem: Problem) -> str:
    """The message of a problem with its hint, without control characters."""
    return clean(f"{problem.message} ({problem.hint})" if problem.hint else problem.message)


def sarif(problems: Sequence[Problem], rules: Mapping[str, str], version: str) -> str:
    """A SARIF 2.1.0 log with one run. ``rules``: what each code means; only those that occur are listed. Columns count
    characters from 1, ends are exclusive, as in ``Span``."""
    occurring = sorted({problem.code for problem in problems})
    index = {code: number for number, code in enumerate(occurring)}
    driver = {
        "name": "workbench",
        "semanticVersion": version,
        "rules": [{"id": code, "shortDescription": {"text": rules.get(code, code)}} for code in occurring],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(problem, index[problem.code]) for problem in problems],
    }
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _sarif_result(problem: Problem, rule: int) -> dict[str, Any]:
    span = problem.span
    region = {"startLine": span.line, "startColumn": span.column}
    if (span.end_line, span.end_column) > (span.line, span.column):
        region |= {"endLine": span.end_line, "endColumn": span.end_column}
    place = {"artifactLocation": {"uri": quote(problem.file)}, "region": region}
    return {
        "ruleId": problem.code,
        "ruleIndex": rule,
        "level": _SARIF_LEVELS[problem.severity],
        "message": {"text": message_of(problem)},
        "locations": [{"physicalLocation": place}],
    }


def junit(suite: str, cases: Iterable[Case]) -> str:
    """A JUnit XML document with one suite."""
    listed = list(cases)
    failed = sum(bool(case.failures) for case in listed)
    skipped = sum(bool(case.skipped) for case in listed)
    counts = {"tests": str(len(listed)), "failures": str(failed), "errors": "0", "skipped": str(skipped)}
    root = ElementTree.Element("testsuites", counts)
    element = ElementTree.SubElement(root, "testsuite", {"name": suite, **counts})
    for case in listed:
        about = {"name": _xml(clean_line(case.name)), "classname": suite, "file": _xml(clean_line(case.file))}
        test = ElementTree.SubElement(element, "testcase", about)
        if case.failures:
            failure = ElementTree.SubElement(test, "failure", {"message": _xml(case.failures[0])})
            failure.text = _xml("\n".join(case.failures))
        if case.skipped:
            ElementTree.SubElement(test, "skipped", {"message": _xml(clean_line(case.skipped))})
        if case.notes:
            ElementTree.SubElement(test, "system-out").text = _xml("\n".join(case.notes))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def write_report(text: str) -> None:
    """A report on stdout, and not even an empty line if there is nothing to report."""
    if text:
        click.echo(text)


def github(problems: Iterable[Problem]) -> list[str]:
    """Workflow commands that annotate the lines of a pull request."""
    return [_annotation(problem) for problem in problems]


def _annotation(problem: Problem) -> str:
    span = problem.span
    about = {"file": problem.file, "line": span.line, "col": span.column, "endLine": span.end_line}
    if span.end_line == span.line and span.end_column > span.column:  # A column of the end counts on one line alone.
        about["endColumn"] = span.end_column
    about["title"] = f"workbench {problem.code}"
    named = ",".join(f"{key}={_escaped(str(value), inside=True)}" for key, value in about.items())
    return f"::{_GITHUB_COMMANDS[problem.severity]} {named}::{_escaped(message_of(problem))}"


def _escaped(text: str, *, inside: bool = False) -> str:
    """Percent-encodes what would end a workflow command, or one of its properties."""
    signs = "%\r\n" + (":," if inside else "")
    return "".join(f"%{ord(sign):02X}" if sign in signs else sign for sign in text)


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", clean(text))
