"""A folder that a stranger packed may hold pipes under any name: no command waits for who never writes to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import run_cli
from tests.support.pipes import unattended


@pytest.fixture
def pipe(workspace: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A pipe in the workspace that nobody writes to."""
    pipe = workspace / str(request.param)
    pipe.parent.mkdir(exist_ok=True)
    pipe.unlink(missing_ok=True)
    with unattended(pipe):
        yield pipe


@pytest.mark.parametrize(
    ("pipe", "command", "told"),
    [
        (
            "greet.replies.yaml",
            "run greet.yaml --model offline",
            "greet.replies.yaml: error: cannot be read",
        ),
        ("workbench.yaml", "config show", "it is not a plain file"),
        ("snapshots/a.json", "test run", "no snapshots in "),
        ("tackle/a.tool.json", "check greet.yaml", "no problems"),
        ("tools/a.py", "check greet.yaml", "no problems"),
    ],
    indirect=["pipe"],
)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(pipe: Path, command: str, told: str) -> None:
    ended = run_cli(*command.split())
    assert told in ended.out + ended.err


@pytest.mark.parametrize("pipe", ["themes/a.yaml"], indirect=True)
def test_a_theme_that_is_a_pipe_is_named(pipe: Path) -> None:
    from workbench.themes import load_themes

    (problem,) = load_themes([pipe.parent]).problems
    assert "it is not a plain file" in problem
