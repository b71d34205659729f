"""What is told of files that are not as they should be: each problem with its place, its hint and its fix, as stored.

The texts stand in ``faults/`` behind ``|``, each with what is told of it below."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

import pytest

from tests.support.stored import check_stored
from workbench.language.decomposition.schema import json_schema
from workbench.language.dot.stylesheet import read_stylesheet
from workbench.language.lint.environment import LintEnvironment
from workbench.language.lint.linter import check
from workbench.language.load import load

FAULTS = Path(__file__).parent / "faults"
SHORT = {
    '"…": ""': '"description": "d", "thought": "t", "expected_output": "e"',
    '"does": "all"': '"dependencies": [], "action_type": "inference", "does": ""',
    '"does": ""': '"tool_or_prompt": {"name": "inference", "params": {"prompt": "p"}}',
}
"""What most tasks have."""
ENDINGS = {"dot": ".dot", "json": ".json", "tasks": ".json", "yaml": ".yaml"}


def told(text: str, file: str) -> list[str]:
    said = []
    for one in check(load(text, file), LintEnvironment()):
        at = f"{one.span.line}:{one.span.column}-{one.span.end_line}:{one.span.end_column}"
        said.append(f"{at} {one.severity} {one.code} {one.message}")
        said += [f"  {one.hint}"] if one.hint else []
        said += [f"  fix {one.fix!r}"] if one.fix is not None else []
    return said or ["nothing"]


def styled(text: str) -> list[str]:
    sheet = read_stylesheet(text)
    rules = [f"{rule.selector}@{rule.at}: {', '.join(map(str, rule.declared))}" for rule in sheet.rules]
    return [*rules, *(f"{one.at}+{one.length} {one.code} {one.message} {one.hint}".strip() for one in sheet.faults)]


@pytest.mark.parametrize("name", ["dot", "json", "tasks", "yaml", "stylesheets"])
def test_files_that_are_not_as_they_should_be_are_told_as_stored(name: str) -> None:
    lines: list[str] = []
    for is_text, group in groupby(
        (FAULTS / f"{name}.txt").read_text("utf-8").splitlines(), lambda line: line[:1] == "|"
    ):
        if is_text:
            given = list(group)
            text = "\n".join(line[2:] for line in given)
            for short, whole in SHORT.items():
                text = text.replace(short, whole)
            lines += [*given, *(styled(text) if name == "stylesheets" else told(text, f"x{ENDINGS[name]}"))]
    check_stored(FAULTS / f"{name}.txt", "\n".join(lines) + "\n")


def test_the_schema_of_decompositions_is_as_stored() -> None:
    check_stored(FAULTS / "decomposition-schema.txt", json.dumps(json_schema(), indent=1) + "\n")
