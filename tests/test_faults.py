"""The table of faults and the tests that inject them agree, row by row."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "faults.md"
ROW = re.compile(r"^\| (F\d+) \|.*\| ([^|]+) \|$", re.MULTILINE)


def marked() -> dict[str, set[str]]:
    """Files by row, from the marks of the tests."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        text = file.read_text("utf-8")
        if "mark.fault" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fault":
                for row in node.args:
                    assert isinstance(row, ast.Constant), f"{file}:{node.lineno}"
                    found[str(row.value)].add(str(file.relative_to(ROOT)))
    return found


def test_every_fault_is_injected_and_stands_in_the_table() -> None:
    wanted = {f"F{number}" for number in range(1, 36)}
    named = {row: set(re.findall(r"`(tests/[^`]+\.py)`", files)) for row, files in ROW.findall(PAGE.read_text("utf-8"))}
    assert named.keys() == wanted
    assert named == marked()
