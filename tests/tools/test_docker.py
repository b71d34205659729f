"""The Docker level against a stand-in client that notes how it is called: the daemon is outside this project."""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path

import pytest

from workbench.tools.sandbox import FinishedCommand, Sandbox
from workbench.tools.sandbox.scratch import SCRATCH

CLIENT = """#!/bin/bash
log="$(dirname "$0")/calls"
printf '%q ' "$@" >> "$log"; echo >> "$log"
case "$1" in
  version) [ -e "$(dirname "$0")/down" ] && exit 1; echo 28.0 ;;
  image) [ -e "$(dirname "$0")/missing" ] && exit 1; echo sha256:1 ;;
  rm) kill -9 "$(cat "$(dirname "$0")/running")"; exit 0 ;;
  run) case "$*" in *'a b'*) ;; *) exit 0 ;; esac
    echo $$ > "$(dirname "$0")/running"; [ -e "$(dirname "$0")/slow" ] && exec sleep 60; echo ran ;;
esac
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a ``docker`` that answers; files in it change what it does, ``calls`` lists its arguments."""
    folder = tmp_path / "client"
    folder.mkdir()
    (folder / "docker").write_text(CLIENT)
    (folder / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def calls(client: Path) -> list[list[str]]:
    return [shlex.split(line) for line in (client / "calls").read_text().splitlines()]


def started(client: Path) -> list[str]:
    """The call that started our command; the one before it tried what a container could write."""
    (argv,) = [call for call in calls(client) if call[0] == "run" and "CITY=Ulm" in call]
    return argv


def run(root: Path, **rest: float) -> FinishedCommand:
    return asyncio.run(Sandbox(root, level="docker").run(["sh", "-c", "echo 'a b'"], env={"CITY": "Ulm"}, **rest))  # type: ignore[arg-type]


def test_a_container_has_no_network_no_rights_and_a_read_only_system(client: Path, root: Path) -> None:
    finished = run(root)
    assert (finished.stdout, finished.level) == ("ran\n", "docker")
    argv = started(client)
    text = " ".join(argv)
    for words in (
        "--rm",
        "--pull never",
        "--network none",
        "--read-only",
        "--cap-drop ALL",
        "--security-opt no-new-privileges",
        "--pids-limit 64",
        "--env CITY=Ulm",
        "--workdir /workspace",
        f"--mount type=bind,source={SCRATCH.folder}/copy-",
        "/files,destination=/workspace ",
    ):
        assert words in text
    user, group = argv[argv.index("--user") + 1].split(":")
    assert user == group != "0" if os.getuid() == 0 else int(user) == os.getuid()
    assert argv[-5:] == ["--entrypoint", "sh", "python:3.11-slim", "-c", "echo 'a b'"]


def test_a_container_that_takes_too_long_is_removed_by_its_name(client: Path, root: Path) -> None:
    (client / "slow").touch()
    finished = run(root, timeout_s=3.0)
    assert finished.timed_out
    argv = started(client)
    assert calls(client)[-1] == ["rm", "--force", argv[argv.index("--name") + 1]]


@pytest.mark.parametrize(
    ("file", "words"), [("down", "the Docker daemon does not answer"), ("missing", "docker pull python:3.11-slim")]
)
def test_what_docker_lacks_is_said(client: Path, root: Path, file: str, words: str) -> None:
    (client / file).touch()
    probe = asyncio.run(Sandbox(root, level="docker").probe())
    assert probe.level is None
    assert words in str(probe)


def test_a_path_with_a_comma_is_one_field_of_its_mount(client: Path, root: Path, tmp_path: Path) -> None:
    odd = tmp_path / 'a,b "c"'
    odd.mkdir()
    (odd / ".env").write_text("KEY=x")
    sandbox = Sandbox(root, level="docker")
    asyncio.run(sandbox.run(["sh", "-c", "echo 'a b'"], env={"CITY": "Ulm"}, folders=[odd]))
    quoted = str(odd).replace('"', '""')
    assert f'type=bind,source="{quoted}",destination="{quoted}",readonly' in started(client)
    assert f'type=bind,source=/dev/null,destination="{quoted}/.env",readonly' in started(client)


def test_the_workspace_in_a_container_is_a_copy_without_secrets(
    client: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (client / "docker").write_text(
        CLIENT.replace("echo ran", 'cp -r "$(echo "$*" | grep -o "/[^ ]*/files")" "$0.seen"; echo ran')
    )
    run(root)
    seen = sorted(path.relative_to(client / "docker.seen").as_posix() for path in (client / "docker.seen").rglob("*"))
    assert seen == ["data", "data/orders.csv", "notes.txt"]
