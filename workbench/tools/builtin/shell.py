"""The tools linux_shell and run_code: a command or a program of the model's, in the sandbox or not at all."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from workbench.engine.contracts import ToolImage, ToolResult
from workbench.language.clean import clean_line
from workbench.tools.results import NOTHING, ImageRefused, bounded, read_image
from workbench.tools.sandbox import FinishedCommand, Sandbox
from workbench.tools.sandbox.limits import PATH
from workbench.tools.sandbox.scratch import SCRATCH

MAX_TIMEOUT_S = 600
MAX_CHARS = 40_000
"""Of stdout and stderr each, for the model; head and tail are kept."""
MAX_IMAGES = 10

Language = Literal["python", "bash", "sh", "javascript"]
_PROGRAMS: dict[str, tuple[str, ...]] = {
    "python": ("python3", "-"),
    "bash": ("bash", "-s"),
    "sh": ("sh", "-s"),
    "javascript": ("node", "-"),
}


class ShellTools:
    """linux_shell and run_code over one sandbox."""

    def __init__(self, sandbox: Sandbox, folders: Sequence[Path] = (), begin: Callable[[], Path] | None = None) -> None:
        """``folders`` are folders outside the sandbox that commands may read. ``begin`` gives the folder inside it that
        a command begins in, if not its root."""
        self.sandbox = sandbox
        self.folders = tuple(folders)
        self._begin = begin or (lambda: sandbox.workspace)

    async def linux_shell(self, command: str, timeout: int = 30) -> ToolResult:
        """Run a shell command in the workspace, in a sandbox without network. Images saved to $OUTBOX are shown to you.

        Args:
            command: What to run, as for `sh -c`.
            timeout: Seconds, at most 600.
        """
        return await self._run(["sh", "-c", command], timeout)

    async def run_code(self, code: str, language: Language = "python", timeout: int = 30) -> ToolResult:
        """Run a program in the workspace, in a sandbox without network. Images saved to $OUTBOX are shown to you.

        Args:
            code: The whole program; print what you want to see.
            language: python, bash, sh or javascript.
            timeout: Seconds, at most 600.
        """
        argv, readable = await self.interpreter(language)
        return await self._run(argv, timeout, stdin=code, readable=readable)

    async def script(self, text: str, env: Mapping[str, str], stdin: str, timeout: int) -> ToolResult:
        """Run a script of the workspace with these variables and this standard input."""
        return await self._run(["sh", "-c", text], timeout, stdin=stdin, env=env)

    async def command(self, text: str, env: Mapping[str, str], timeout: float) -> ToolResult:
        """Run a command line of a pipeline; its value holds stdout, stderr and the exit code apart."""
        finished = await self.sandbox.run(
            ["sh", "-c", text], cwd=self._begin(), timeout_s=timeout, env=env, folders=self.folders
        )
        value = {
            "stdout": bounded(finished.stdout, MAX_CHARS),
            "stderr": bounded(finished.stderr, MAX_CHARS),
            "exit_code": finished.exit_code,
        }
        return replace(reported(finished, timeout), value=value)

    async def interpreter(self, language: Language) -> tuple[list[str], list[Path]]:
        """The command that reads a program from standard input, and what must be readable for it.

        Where no Python is installed for all users, the one that runs the workbench serves. Raises LookupError when
        the language is not installed.
        """
        program, *rest = _PROGRAMS[language]
        probe = await self.sandbox.probe()
        if probe.level == "docker" or shutil.which(program, path=PATH):
            return [program, *rest], []
        if language == "python":
            base = Path(sys.base_prefix).resolve()
            return [str(base / "bin" / "python3"), *rest], [base]
        raise LookupError(f"{language} is not installed here ({program} is not in {PATH})")

    async def _run(
        self,
        argv: list[str],
        timeout: int,
        *,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        readable: Sequence[Path] = (),
    ) -> ToolResult:
        if not 1 <= timeout <= MAX_TIMEOUT_S:
            raise ValueError(f"'timeout' is between 1 and {MAX_TIMEOUT_S} seconds")
        data = stdin.encode("utf-8", "replace") if stdin is not None else None
        with SCRATCH.subfolder("outbox") as folder:
            outbox = folder.resolve()
            finished = await self.sandbox.run(
                argv,
                cwd=self._begin(),
                timeout_s=timeout,
                stdin=data,
                env=env,
                readable=readable,
                folders=self.folders,
                outbox=outbox,
            )
            images, notes = outbox_images(outbox)
        return replace(reported(finished, timeout, notes), images=tuple(images))


def reported(finished: FinishedCommand, timeout_s: float, notes: Sequence[str] = ()) -> ToolResult:
    """A finished command as a result; an error if it failed."""
    text, whole = (_report(finished, timeout_s, notes, limit) for limit in (MAX_CHARS, sys.maxsize))
    whole = whole if whole != text else ""
    return ToolResult(text, is_error=not finished.ok, sandbox=finished.level, whole=whole)


def _report(finished: FinishedCommand, timeout_s: float, notes: Sequence[str], limit: int) -> str:
    """Returns the report for a model: stdout, then stderr and the way it ended, each under a mark."""
    parts = [bounded(finished.stdout.rstrip("\n"), limit)]
    if finished.stderr.strip():
        parts.append(f"[stderr]\n{bounded(finished.stderr.rstrip(), limit)}")
    if finished.timed_out:
        parts.append(f"[timed out after {timeout_s:g} s; everything it had started was ended]")
    elif finished.truncated:
        parts.append("[ended: it wrote more than the output limit]")
    elif finished.exit_code:
        parts.append(f"[exit code {finished.exit_code}]")
    parts += [f"[{note}]" for note in (*finished.notes, *notes)]
    return "\n".join(part for part in parts if part) or NOTHING


def outbox_images(outbox: Path) -> tuple[list[ToolImage], list[str]]:
    """The images a command left in its outbox, by name. Links are not followed."""
    images: list[ToolImage] = []
    notes: list[str] = []
    for path in sorted(outbox.iterdir()):
        name = clean_line(path.name, 100)
        if len(images) == MAX_IMAGES:
            notes.append(f"only the first {MAX_IMAGES} images of the outbox are kept")
            break
        try:
            if path.is_symlink():
                raise ImageRefused(f"'{name}' is a link")
            images.append(read_image(path, name))
        except ImageRefused as fault:
            notes.append(f"left out of the outbox: {fault}")
    return images, notes
