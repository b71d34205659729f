"""Python tools of a workspace: loaded where trusted, announced where not, and never a crash."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from workbench.tools.python_files import PythonFolder, python_folders
from workbench.tools.python_tools import announce_tools, load_tools
from workbench.tools.registry import Kind, Registry

WEATHER = '''
    """Two tools, one of them registered under another name."""
    from workbench import register_tackle
    from typing import Literal, Optional

    LOADED = open(__file__.replace("weather.py", "loaded.txt"), "a").write("x")

    def forecast(city: str, days: int = 3, unit: Literal["C", "F"] = "C", at: Optional[str] = None) -> dict:
        """Say what the weather will be.

        Args:
            city: Its name.
        """
        return {"city": city, "days": days}

    def helper() -> None:
        """Not a tool: the file registers what it offers."""

    register_tackle("weather_forecast", forecast)
'''
PLAIN = '''
    import math
    from .units import to_fahrenheit

    async def convert(celsius: float) -> float:
        """Degrees Fahrenheit."""
        return to_fahrenheit(celsius)

    def _private() -> None: ...
'''
UNITS = """
    def to_fahrenheit(celsius):
        return celsius * 9 / 5 + 32
"""


@pytest.fixture
def tools(root: Path) -> Path:
    folder = root / "tools"
    folder.mkdir()
    write(folder, "weather.py", WEATHER)
    write(folder, "plain.py", PLAIN)
    write(folder, "units.py", UNITS)
    return folder


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(dedent(text).lstrip())
    return folder / name


def loaded(folder: Path) -> Registry:
    registry = Registry()
    load_tools(PythonFolder.read(folder), registry)
    return registry


def announced(folder: Path) -> Registry:
    registry = Registry()
    announce_tools(PythonFolder.read(folder), registry)
    return registry


def test_registered_functions_are_the_tools_of_a_file_else_its_public_ones(tools: Path) -> None:
    registry = loaded(tools)
    assert registry.names() == ["convert", "to_fahrenheit", "weather_forecast"]
    tool = registry.get("weather_forecast")
    assert tool is not None
    assert tool.kind is Kind.PYTHON
    assert tool.function(city="Ulm") == {"city": "Ulm", "days": 3}
    assert (tool.file, tool.line) == (str(tools / "weather.py"), 7)
    assert registry.problems == []


def test_a_sibling_is_imported_by_its_relative_name(tools: Path) -> None:
    tool = loaded(tools).get("convert")
    assert tool is not None
    assert asyncio.run(tool.function(celsius=100)) == 212


def test_without_trust_the_tools_are_known_but_nothing_runs(tools: Path) -> None:
    registry = announced(tools)
    assert registry.names() == ["convert", "to_fahrenheit", "weather_forecast"]
    assert not (tools / "loaded.txt").exists()
    assert all("not trusted" in tool.refusal for tool in registry)


def test_an_announced_tool_is_described_as_the_loaded_one(tools: Path) -> None:
    before, after = announced(tools), loaded(tools)
    for name in ("convert", "weather_forecast"):
        stranger, known = before.get(name), after.get(name)
        assert stranger is not None
        assert known is not None
        assert stranger.spec == known.spec


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("x = 1\nraise RuntimeError('no key')\n", 2, 1, "broken.py cannot be imported: RuntimeError: no key"),
        ("import sys\nsys.exit(3)\n", 2, 1, "SystemExit: 3"),
        ("def f(:\n", 1, 7, "broken.py is not valid Python: invalid syntax"),
        ("import nowhere_to_be_found\n", 1, 1, "ModuleNotFoundError"),
        ("x = 1\n\ndef f(**k): ...\n", 3, 1, "'**k' accepts anything"),
        ("from workbench import register_tackle\nregister_tackle('a b', print)\n", 2, 1, "is not a name for a tool"),
        ("def f(x: Nonsense): ...\n", 1, 1, "Nonsense"),
    ],
)
def test_a_broken_file_is_a_problem_at_its_line_and_the_others_load(
    tools: Path, text: str, line: int, column: int, words: str
) -> None:
    path = write(tools, "broken.py", text)
    registry = loaded(tools)
    assert "weather_forecast" in registry
    (problem,) = registry.problems
    assert problem.file == str(path)
    assert (problem.span.line, problem.span.column) == (line, column)
    assert words in problem.message


def test_a_broken_file_is_a_problem_without_trust_too(tools: Path) -> None:
    write(tools, "broken.py", "def f(:\n")
    registry = announced(tools)
    assert "not valid Python" in registry.problems[0].message
    assert "convert" in registry


def test_a_change_is_seen_by_the_next_load(tools: Path) -> None:
    first = loaded(tools).get("convert")
    write(tools, "units.py", UNITS.replace("+ 32", "+ 33"))
    second = loaded(tools).get("convert")
    assert first is not None
    assert second is not None
    assert asyncio.run(second.function(celsius=0)) == 33


def test_only_the_bytes_that_were_read_run(tools: Path) -> None:
    folder = PythonFolder.read(tools)
    write(tools, "units.py", "def to_fahrenheit(celsius): return 'swapped'")
    registry = Registry()
    load_tools(folder, registry)
    tool = registry.get("convert")
    assert tool is not None
    assert asyncio.run(tool.function(celsius=100)) == 212


def test_a_forged_cache_or_binary_module_is_never_used(tools: Path) -> None:
    (tools / "units.py").unlink()
    write(tools.parent, "evil.py", "def to_fahrenheit(celsius): return 'evil'")
    compiled = f"import py_compile; py_compile.compile('evil.py', r'{tools / 'units.pyc'}')"
    subprocess.run([sys.executable, "-c", compiled], cwd=tools.parent, check=True)
    registry = loaded(tools)
    assert "convert" not in registry
    assert "no module 'units'" in registry.problems[0].message


def test_folders_are_found_beside_the_cascade_and_in_the_workspace_but_not_through_links(tools: Path) -> None:
    root = tools.parent
    (root / "cascades").mkdir()
    (root / "cascades" / "tools").mkdir()
    (root / "data" / "tools").symlink_to(tools)
    found = python_folders(root / "cascades", root, root, root / "data")
    assert found == [root / "cascades" / "tools", tools]


def test_a_link_out_of_the_folder_and_helpers_behind_an_underscore_are_no_tools(tools: Path) -> None:
    write(tools.parent, "outside.py", "def stolen() -> None: ...")
    (tools / "outside.py").symlink_to(tools.parent / "outside.py")
    write(tools, "_shared.py", "def shared() -> None: ...")
    folder = PythonFolder.read(tools)
    assert "outside.py" not in folder.files
    assert "_shared.py" in folder.hashes
    assert "shared" not in loaded(tools)


HINTS = (
    *("str", "int", "float", "bool", "list", "dict", "None", "Any", "'str'", "typing.Any"),
    *("list[str]", "list[int]", "List[float]", "typing.List[str]", "dict[str, int]", "Dict[str, float]"),
    *("list[list[int]]", "dict[str, list[bool]]", "list[dict[str, int]]"),
    *("Optional[int]", "Optional[list[str]]", "Union[int, str]", "int | None", "list[int] | None"),
    *("Literal['C', 'F']", "Literal[1, 2]", "Literal['one']", "Annotated[int, 'a note']", "typing.Optional[bool]"),
)


@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("rest", ["", " = None"])
def test_an_announced_tool_has_the_schema_of_the_loaded_one_for_every_hint(tools: Path, hint: str, rest: str) -> None:
    text = f"""
    import typing
    from typing import Annotated, Any, Dict, List, Literal, Optional, Union

    def hinted(first: {hint}, second: {hint}{rest}, *, third: {hint}{rest or " = None"}) -> None:
        '''Takes them.'''
    """
    write(tools, "hinted.py", text)
    stranger, known = announced(tools).get("hinted"), loaded(tools).get("hinted")
    assert stranger is not None
    assert known is not None
    assert stranger.spec == known.spec
