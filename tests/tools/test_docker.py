"""The Docker level against a stand-in client that notes how it is called: the daemon is outside this project."""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path

import pytest

from workbench.tools.sandbox import Finished, Sandbox

CLIENT = """#!/bin/bash
log="$(dirname "$0")/calls"
printf '%q ' "$@" >> "$log"; echo >> "$log"
case "$1" in
  version) [ -e "$(dirname "$0")/down" ] && exit 1; echo 28.0 ;;
  image) [ -e "$(dirname "$0")/missing" ] && exit 1; echo sha256:1 ;;
  rm) kill -9 "$(cat "$(dirname "$0")/running")"; exit 0 ;;
  run) echo $$ > "$(dirname "$0")/running"; [ -e "$(dirname "$0")/slow" ] && exec sleep 60; echo ran ;;
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


def run(root: Path, **rest: float) -> Finished:
    return asyncio.run(Sandbox(root, level="docker").run(["sh", "-c", "echo 'a b'"], env={"CITY": "Ulm"}, **rest))  # type: ignore[arg-type]


def test_a_container_has_no_network_no_rights_and_a_read_only_system(client: Path, root: Path) -> None:
    finished = run(root)
    assert (finished.stdout, finished.level) == ("ran\n", "docker")
    (argv,) = [call for call in calls(client) if call[0] == "run"]
    text = " ".join(argv)
    for words in (
        "--rm",
        "--pull never",
        "--network none",
        "--read-only",
        "--cap-drop ALL",
        "--security-opt no-new-privileges",
        "--pids-limit 64",
        f"--user {os.getuid()}:{os.getgid()}",
        "--env CITY=Ulm",
        "--workdir /workspace",
        f"--mount type=bind,source={root},destination=/workspace",
        "--mount type=tmpfs,destination=/workspace/.workbench,tmpfs-size=4096",
        "--mount type=bind,source=/dev/null,destination=/workspace/.env,readonly",
    ):
        assert words in text
    assert argv[-5:] == ["--entrypoint", "sh", "python:3.11-slim", "-c", "echo 'a b'"]


def test_a_container_that_takes_too_long_is_removed_by_its_name(client: Path, root: Path) -> None:
    (client / "slow").touch()
    finished = run(root, timeout_s=0.3)
    assert finished.timed_out
    started = next(call for call in calls(client) if call[0] == "run")
    assert calls(client)[-1] == ["rm", "--force", started[started.index("--name") + 1]]


@pytest.mark.parametrize(
    ("file", "words"), [("down", "the Docker daemon does not answer"), ("missing", "docker pull python:3.11-slim")]
)
def test_what_docker_lacks_is_said(client: Path, root: Path, file: str, words: str) -> None:
    (client / file).touch()
    probe = asyncio.run(Sandbox(root, level="docker").probe())
    assert probe.level is None
    assert words in str(probe)


def test_a_path_with_a_comma_is_one_field_of_its_mount(client: Path, tmp_path: Path) -> None:
    odd = tmp_path / 'a,b "c"'
    odd.mkdir()
    run(odd)
    (argv,) = [call for call in calls(client) if call[0] == "run"]
    quoted = str(odd).replace('"', '""')
    assert f'type=bind,source="{quoted}",destination=/workspace' in argv
