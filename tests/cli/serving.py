"""A server under test: ``workbench serve`` as its own process, in a folder of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.support.waiting import PATIENCE

CASCADE = """\
cascade_id: served
description: A cascade for the browser.
phases:
  - name: lighthouse
    instructions: Say which ship is seen first.
"""


@dataclass
class Server:
    """A server that listens."""

    process: subprocess.Popen[str]
    url: str
    """Without the token."""
    token: str
    printed: str
    """What the printed address has behind the host."""

    def cookie(self, token: str = "") -> str:
        """The header ``Cookie`` that a browser sends; with another token where one is given."""
        return f"workbench_token_{self.url.rpartition(':')[2]}={token or self.token}"

    def get(self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> tuple[int, str, Any]:
        """Status, body and headers; redirects are not followed."""
        request = urllib.request.Request(self.url + path, headers=dict(headers or {}), method=method)
        opener = urllib.request.build_opener(_Stay)
        try:
            with opener.open(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode("utf-8"), answer.headers
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode("utf-8"), refused.headers

    def asked(self, path: str, **headers: str) -> tuple[int, str, Any]:
        """The same with the token."""
        return self.get(path, {"Authorization": f"Bearer {self.token}", **headers})

    def json(self, path: str) -> Any:
        return json.loads(self.asked(path)[1])

    def children(self) -> list[int]:
        """Processes that the server started."""
        return children(self.process.pid)


def children(pid: int) -> list[int]:
    """Processes that a process started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def is_alive(pid: int) -> bool:
    """Whether a process is there and more than the record of its end."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def command(*words: str) -> list[str]:
    return [sys.executable, "-c", "from workbench.__main__ import main; main()", *words]


def environment(folder: Path) -> dict[str, str]:
    source = str(Path(__file__).resolve().parents[2])
    own = {"WORKBENCH_CONFIG_DIR": str(folder / "config"), "WORKBENCH_STATE_DIR": str(folder / "state")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WORKBENCH_", "WINDLASS_"))}
    return {**kept, **own, "PYTHONPATH": source, "NO_COLOR": "1"}


@contextmanager
def served(folder: Path, *, named: bool = True, token: str = "") -> Iterator[Server]:
    """Serve a small cascade, or the folder that it lies in; at the end Ctrl+C is sent, if nobody has ended it.

    ``token``: what WORKBENCH_TOKEN is to be; empty for one that is drawn.
    """
    file = folder / "served.yaml"
    file.write_text(CASCADE)
    process = subprocess.Popen(
        command("serve", *([str(file)] if named else []), "--port", "0", "--model", "offline"),
        cwd=folder,
        env={**environment(folder), **({"WORKBENCH_TOKEN": token} if token else {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line, process.stderr.read() if process.stderr else ""
        url, _, printed = line.partition("/?token=")
        yield Server(process, url, unquote(printed), f"?token={printed}")
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        finally:
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
