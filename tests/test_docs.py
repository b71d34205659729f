"""The guide does what it says: its commands exist, its tutorial runs, its numbers are those of the example."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from scripts.pictures import FOLDER, PICTURES, Picture, missing
from tests.support.command import run_cli
from tests.support.workspaces import alone
from workbench.cli.main import main
from workbench.workspace.home import copy_examples

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/guide/*.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(workbench [^`]+)`")
SHELL = re.compile(r" \| | > (?=[\w./-]+$)| <(?=/dev/null$)")
"""What is the shell's behind a command."""
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def blocks(page: Path, language: str) -> list[str]:
    return [text for found, text in FENCE.findall(page.read_text("utf-8")) if found == language]


def commands(page: Path) -> list[list[str]]:
    """The arguments of every ``workbench`` command of a page, up to a pipe or a file that it reads or writes."""
    lines = [line for block in blocks(page, "sh") for line in block.splitlines() if line.startswith("workbench ")]
    text = [*lines, *INLINE.findall(FENCE.sub("", page.read_text("utf-8")))]
    words = [shlex.split(SHELL.split(command)[0].replace(" …", "")) for command in text]
    return [each[1:] for each in words if "COMMAND" not in each]


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text("utf-8")) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_every_picture_shows_what_its_page_speaks_of(picture: Picture) -> None:
    """Keys that lead to another place after a change of the app drew a picture of something else."""
    assert picture.shows, "say which words it is taken for"
    assert missing(picture, (FOLDER / f"{picture.name}.svg").read_text("utf-8")) == []


def test_every_picture_is_shown_and_every_page_of_the_guide_is_listed() -> None:
    shown = {Path(target).name for page in DOCS for target in LINK.findall(page.read_text("utf-8"))}
    assert [file.name for file in (ROOT / "docs" / "pictures").iterdir() if file.name not in shown] == []
    for index in (ROOT / "README.md", ROOT / "docs" / "README.md"):
        listed = {(index.parent / target).resolve() for target in LINK.findall(index.read_text("utf-8"))}
        assert [page.name for page in (ROOT / "docs" / "guide").iterdir() if page not in listed] == [], index


def test_the_front_page_tells_what_the_page_on_masking_measured() -> None:
    page = (ROOT / "docs" / "guide" / "what-masking-costs.md").read_text("utf-8")
    measured = re.search(r"sends (\d+%) fewer tokens and costs (\d+%) more", page)
    assert measured is not None
    assert f"{measured[1]} fewer tokens, {measured[2]} more money" in (ROOT / "README.md").read_text("utf-8")


def test_every_package_has_its_place_on_the_page_on_architecture() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    package = ROOT / "workbench"
    packages = [f"{folder.parent.relative_to(package)}/" for folder in package.glob("*/**/__init__.py")]
    modules = [module.name for module in package.glob("*.py") if module.name != "__main__.py"]
    assert [name for name in [*packages, *modules] if f"`{name}`" not in page] == []


def test_every_module_that_the_page_on_architecture_names_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    modules = [
        f"/{file.relative_to(ROOT)}" for top in ("workbench", "tests", "scripts") for file in (ROOT / top).rglob("*.py")
    ]
    named = set(re.findall(r"`([\w/]+\.py)`", page))
    assert sorted(name for name in named if not any(module.endswith(f"/{name}") for module in modules)) == []


@pytest.mark.parametrize("page", [page for page in DOCS if commands(page)], ids=lambda page: page.name)
def test_every_command_is_understood(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    root = click.Context(main, info_name="workbench", **main.context_settings)
    for name, *arguments in commands(page):
        command = main.get_command(root, name)
        assert command is not None, name
        if arguments:
            command.make_context(name, arguments, parent=root)


def test_the_tutorial_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs" / "guide" / "first-cascade.md"
    alone(monkeypatch, tmp_path, tmp_path / "work")
    cascade, replies = blocks(page, "yaml")
    Path("release.yaml").write_text(cascade)
    Path("release.replies.yaml").write_text(replies.replace("latency: 0.3", "latency: 0"))
    Path("release.input.json").write_text(blocks(page, "json")[0])
    Path("commits.txt").write_text(blocks(page, "text")[0])
    checked = run_cli("check", "release.yaml", "release.replies.yaml")
    assert (checked.code, checked.out) == (0, "")
    Path("typo.yaml").write_text(cascade.replace("tackle", "tackel"))
    assert run_cli("check", "typo.yaml").out.split(" [")[0].replace("typo", "release") in page.read_text("utf-8")
    ran = run_cli("run", "release.yaml")
    assert (ran.code, ran.out) == (0, "- New: a dark theme\n- Fixed: a crash when the file is empty\n")
    assert "↪ sort.output" in run_cli("context", "--phase", "write").out


def test_the_prices_of_the_guide_are_those_of_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, tmp_path, tmp_path / "work")
    copy = copy_examples(Path("cascades"))
    replies = copy / "debug_agent.replies.yaml"
    replies.write_text(replies.read_text("utf-8").replace("latency: 0.5", "latency: 0"), "utf-8")
    assert run_cli("run", "cascades/debug_agent.yaml", "--session", "hunt", "-q").code == 0

    def row(*strategy: str) -> str:
        shown = run_cli("context", "hunt", "--phase", "investigate", "--json", *strategy).json
        tokens = sum(call["tokens_sent"] for call in shown)
        return f"{tokens:,} | ${sum(call['predicted']['input_cost'] for call in shown):.4f} |"

    page = (ROOT / "docs" / "guide" / "what-did-it-see.md").read_text("utf-8")
    wanted = [row(), row("-s", "everything"), row("-s", "in batches")]
    found = re.findall(r"^\| [^|]+ \| ([\d,]+ \| \$[\d.]+ \|)$", page, re.MULTILINE)
    assert found == wanted


def test_the_page_on_strategies_shows_what_the_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "guide" / "compare-strategies.md").read_text("utf-8")
    alone(monkeypatch, tmp_path, tmp_path / "work")
    copy = copy_examples(Path("cascades"))
    replies = copy / "debug_agent.replies.yaml"
    replies.write_text(replies.read_text("utf-8").replace("latency: 0.5", "latency: 0"), "utf-8")
    assert run_cli("run", "cascades/debug_agent.yaml", "--session", "hunt", "-q").code == 0
    shown = re.findall(r"^```sh\nworkbench ([^\n]*)\n```\n\n```text\n(.*?)```$", page, re.MULTILINE | re.DOTALL)
    assert len(shown) == 2
    for command, expected in shown:
        printed = run_cli(*shlex.split(command)).out
        assert "".join(f"{line.rstrip()}\n" for line in printed.splitlines()) == expected
