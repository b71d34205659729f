"""The command line, in this process and as a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from workbench.cli.main import main

WORKBENCH = [sys.executable, "-c", "from workbench.__main__ import main; main()"]
"""``workbench``, whatever is on the path."""
PLACEHOLDERS = ("-m", "offline", "--unscripted", "ok")
"""For runs of which it does not matter what the model says."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Ended]


def run_cli(*arguments: str | Path, stdin: str = "") -> Ended:
    """Run a command in this process, in the current folder."""
    result = CliRunner().invoke(main, [str(a) for a in arguments], input=stdin, prog_name="workbench")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.stdout, result.stderr)
