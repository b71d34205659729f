"""``new``: each template is sound, explains itself, and runs at once without a key."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.command import Cli, run_cli
from workbench.resources import folder
from workbench.workspace.input_file import CannotOpen
from workbench.workspace.starting import TEMPLATES, create

OUTPUTS = {
    "call": "Order a larger disk this week",
    "agent": "Deployments stop on Thursday at noon",
    "router": "Hold both buttons for ten seconds",
    "checks": "Tuesday, March 3rd, 2026",
    "candidates": "the library in Mill Street lends",
    "approval": "we send it again at once",
    "batch": "The jacket is liked",
}


@pytest.mark.parametrize("name", [template.name for template in TEMPLATES])
def test_a_template_passes_every_check_and_runs_offline_at_once(cli: Cli, name: str) -> None:
    ended = cli("new", name, "desk/first try.yaml")
    assert ended.code == 0
    (replies,) = Path("desk").glob("*.replies.yaml")
    replies.write_text(re.sub(r"latency: [0-9.]+", "latency: 0", replies.read_text()))
    checked = cli("check", "--strict", *sorted(str(path) for path in Path("desk").glob("*.yaml")))
    assert (checked.code, "no problems" in checked.out + checked.err) == (0, True), checked.out
    answers = ("--answers", "desk/first try.answers.json") if name == "approval" else ()
    ran = cli("run", "desk/first try.yaml", "-q", *answers)
    assert (ran.code, ran.err) == (0, "")
    assert OUTPUTS[name] in ran.out
    (run,) = cli("runs", "--json").json
    assert (run["cascade_id"], run["status"]) == ("first_try", "success")


@pytest.mark.parametrize("name", [template.name for template in TEMPLATES])
def test_a_template_explains_itself(cli: Cli, name: str) -> None:
    run_cli("new", name, "mine.yaml")
    text = Path("mine.yaml").read_text()
    assert text.startswith("# ")
    assert "workbench open mine.yaml" in text.partition("cascade_id")[0]
    assert len(re.findall(r"^ *# ", text, re.MULTILINE)) >= 7
    assert not re.search(r"@[A-Z]+@", "".join(path.read_text() for path in Path().glob("mine*")))
    assert max(map(len, text.splitlines())) <= 100


def test_all_templates_are_listed_and_each_folder_is_one(cli: Cli) -> None:
    listed = cli("new").out
    names = sorted(path.name for path in folder("templates").iterdir())
    assert sorted(OUTPUTS) == names == sorted(template.name for template in TEMPLATES)
    assert [name for name in names if f"workbench new {name}" not in listed] == []


def test_a_file_that_is_there_is_never_written_over(cli: Cli) -> None:
    Path("flow.input.json").write_text('{"mine": 1}')
    ended = cli("new", "agent", "flow.yaml")
    assert (ended.code, "flow.input.json: there is a file of that name already" in ended.err) == (2, True)
    assert Path("flow.input.json").read_text() == '{"mine": 1}'
    assert [path.name for path in Path().glob("flow*")] == ["flow.input.json"], "nothing of it is left"


def test_the_input_is_taken_from_the_command_line_and_kept(cli: Cli) -> None:
    cli("new", "call", "flow.yaml", "--input", '{"reader": "Ada"}')
    kept = json.loads(Path("flow.input.json").read_text())
    assert kept["reader"] == "Ada"
    assert kept["text"].startswith("The backup")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("agnet",), "no template 'agnet'"),
        (("call", "flow.txt"), "flow.txt: a cascade file ends with .yaml"),
        (("call", "flow.replies.yaml"), "a cascade file ends with .yaml"),
    ],
)
def test_what_cannot_be_made_is_said(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    ended = cli("new", *arguments)
    assert ended.code == 2
    assert words in ended.err


def test_without_a_name_the_file_is_called_as_its_template(cli: Cli) -> None:
    assert cli("new", "router").code == 0
    assert cli("new", "router").code == 0
    assert sorted(path.name for path in Path().glob("router*.yaml") if "replies" not in path.name) == [
        "router.yaml",
        "router2.yaml",
    ]
    assert cli("new", "flow.yaml").code == 0
    assert "summarize" in Path("flow.yaml").read_text()


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotOpen, match="cannot be written"):
        create("call", tmp_path / "file" / "x.yaml", "x.yaml")


def test_open_of_a_file_that_is_not_there_says_how_to_make_it(cli: Cli) -> None:
    ended = cli("open", "flow.yaml")
    assert ended.code == 2
    assert (
        "flow.yaml: error: there is no such file (workbench new call flow.yaml makes it from a template)" in ended.err
    )
