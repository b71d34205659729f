"""linux_shell and run_code: what a model reads of a command, and a refusal where there is no sandbox."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.tools.test_images import png
from workbench.context.place import Place
from workbench.engine.contracts import ToolResult
from workbench.tools.builtin.shell import MAX_CHARS
from workbench.tools.paths import Workspace
from workbench.tools.sandbox import Sandbox
from workbench.tools.toolbox import Toolbox


@pytest.fixture
def box(workspace: Workspace, bwrap: Sandbox) -> Toolbox:
    return Toolbox.of(workspace, bwrap)


def call(box: Toolbox, name: str, /, **arguments: Any) -> ToolResult:
    return asyncio.run(box.call(name, arguments, Place(), 1))


def test_output_errors_and_exit_code_are_told_apart(box: Toolbox) -> None:
    result = call(box, "linux_shell", command="cat notes.txt; echo oops >&2; exit 3")
    assert result.text == "one\ntwo\nthree\n[stderr]\noops\n[exit code 3]"
    assert result.is_error
    assert result.sandbox == "bwrap"
    quiet = call(box, "linux_shell", command="true")
    assert (quiet.text, quiet.is_error) == ("(no output)", False)


def test_a_time_out_is_said_with_what_was_printed_before(box: Toolbox) -> None:
    result = call(box, "linux_shell", command="echo begun; sleep 50", timeout=1)
    assert result.text == "begun\n[timed out after 1 s; everything it had started was ended]"
    assert result.is_error


def test_a_flood_is_cut_for_the_model_with_head_and_tail(box: Toolbox) -> None:
    result = call(box, "linux_shell", command="seq 1 200000")
    assert result.text.startswith("1\n2\n")
    assert "[ended: it wrote more than the output limit]" in result.text
    assert len(result.text) < MAX_CHARS + 300


def test_a_program_runs_in_each_language_that_is_installed(box: Toolbox) -> None:
    assert call(box, "run_code", code="import math\nprint(math.floor(3.7))").text == "3"
    assert call(box, "run_code", code="echo $((6*7))", language="bash").text == "42"
    assert call(box, "run_code", code="print(1/0)").text.endswith("ZeroDivisionError: division by zero\n[exit code 1]")
    assert "must be one of" in call(box, "run_code", code="", language="cobol").text


def test_what_the_program_says_in_other_scripts_comes_back(box: Toolbox) -> None:
    assert call(box, "run_code", code="print('Grüße 日本 \\x1b[31m')").text == "Grüße 日本 \x1b[31m"


def test_images_left_in_the_outbox_are_shown(box: Toolbox) -> None:
    code = (
        "import os\n"
        f"open(os.environ['OUTBOX'] + '/plot.png', 'wb').write({png(5, 4)!r})\n"
        "open(os.environ['OUTBOX'] + '/notes.txt', 'w').write('x')\n"
        "os.symlink('/etc/passwd', os.environ['OUTBOX'] + '/sneaky.png')\n"
    )
    result = call(box, "run_code", code=code)
    assert [(image.path, image.width, image.height) for image in result.images] == [("plot.png", 5, 4)]
    assert result.text.splitlines() == [
        "[left out of the outbox: 'notes.txt' is not a PNG, JPEG, GIF or WebP image]",
        "[left out of the outbox: 'sneaky.png' is a link]",
    ]


def test_the_folder_of_a_cascade_from_elsewhere_can_be_read_but_not_written(
    root: Path, tmp_path: Path, bwrap: Sandbox
) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "far.txt").write_text("far")
    box = Toolbox.of(Workspace.of(root, other), bwrap)
    assert call(box, "linux_shell", command=f"cat {other}/far.txt").text == "far"
    assert call(box, "linux_shell", command=f"echo x > {other}/new.txt").is_error
    assert not (other / "new.txt").exists()


@pytest.mark.parametrize("timeout", [0, 601])
def test_the_time_limit_has_limits(box: Toolbox, timeout: int) -> None:
    assert call(box, "linux_shell", command="true", timeout=timeout).text == (
        "ValueError: 'timeout' is between 1 and 600 seconds"
    )


def test_without_a_sandbox_a_command_is_refused_with_the_way_out(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    box = Toolbox.of(workspace, Sandbox(workspace.root, level="docker"))
    for name, argument in (("linux_shell", "command"), ("run_code", "code")):
        result = call(box, name, **{argument: "true"})
        assert result.is_error
        assert result.text.startswith("SandboxUnavailable: no sandbox here (docker: not installed); install bubblewrap")
