"""The run's side: starts the worker for the first template, and ends it if it does not answer."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any

import jinja2
import markupsafe
from msgspec.structs import asdict

import workbench
from workbench.child_process import exit_words
from workbench.language.templates.names import TemplateFault, first_tag
from workbench.language.templates.sandbox import packed
from workbench.language.templates.template import Rendered, Renderer, outline, plain
from workbench.tools.templates.child import HEAD, RenderLimits

_PROGRAM = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from workbench.tools.templates.child import main
from workbench.tools.templates.child import RenderLimits
main(RenderLimits(**json.loads(sys.argv[2])))
"""
_CHUNK = 1 << 16


class ApartRenderer:
    """Renders templates in another process; the same texts, undefined names and faults as ``Renderer`` here.

    A template that only puts values in is rendered here: it has nothing to take time or memory with. One worker
    serves all threads, one template after the other.
    """

    def __init__(self, limits: RenderLimits = RenderLimits()) -> None:
        self.limits = limits
        self._here = Renderer()
        self._one = threading.Lock()
        self._worker: subprocess.Popen[bytes] | None = None

    def __call__(self, template: str, names: Mapping[str, Any]) -> Rendered:
        """``names`` is plain JSON; what is not becomes a copy that is. Raises TemplateFault."""
        wanted = outline(template)
        if wanted.inserts_only:
            return self._here(template, names)
        try:
            given = {name: plain(names[name]) for name in sorted(wanted.names) if name in names}
            request = json.dumps({"template": template, "names": packed(given)}).encode("ascii")
        except RecursionError:
            raise _fault("a value in it is nested too deeply", template) from None
        with self._one:
            answer = self._answer(request, template)
        if "fault" in answer:
            message, line, column = answer["fault"]
            raise TemplateFault(message, line, column)
        return Rendered(answer["text"], tuple((text, line, column) for text, line, column in answer["undefined"]))

    @property
    def pid(self) -> int | None:
        """Of the worker, while there is one."""
        return self._worker.pid if self._worker is not None else None

    def close(self) -> None:
        """End the worker; the next template starts another."""
        with self._one:
            self._end()

    def _answer(self, request: bytes, template: str) -> dict[str, Any]:
        if self._worker is not None and self._worker.poll() is not None:
            self._end()  # Somebody ended it between two templates: that is no fault of this one.
        try:
            worker = self._worker = self._worker or _started(self.limits)
        except OSError as fault:
            raise _fault(f"the process that renders it cannot be started: {fault.strerror}", template) from fault
        try:
            answer: dict[str, Any] = json.loads(_exchange(worker, HEAD.pack(len(request)) + request, self.limits))
        except _NoAnswer as fault:
            raise _fault(self._why(str(fault)), template) from None
        except BaseException:
            self._end()
            raise
        if answer.get("ends"):
            self._end()
        return answer

    def _why(self, said: str) -> str:
        """Explains why a worker gave no answer."""
        code = self._end()
        if said:
            return said
        if code == -signal.SIGXCPU:
            return self.limits.slow()
        allowed = f"{self.limits.memory_bytes >> 20} MB of memory are allowed"
        return f"the process that rendered it ended ({exit_words(code)}); {allowed}"

    def _end(self) -> int:
        """Returns how the worker ended, by itself or because it is killed now."""
        worker, self._worker = self._worker, None
        if worker is None:
            return 0
        for pipe in (worker.stdin, worker.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return worker.wait(0.05)
        worker.kill()
        return worker.wait()


def apart() -> ApartRenderer:
    """The one of this process, ended with it."""
    return _apart_of(os.getpid())


@cache
def _apart_of(_pid: int) -> ApartRenderer:
    """A fork of a process that has one needs its own: two could not tell whose answer it is that comes."""
    renderer = ApartRenderer()
    atexit.register(renderer.close)
    return renderer


class _NoAnswer(Exception):
    """Why no answer came, if known."""


def _started(limits: RenderLimits) -> subprocess.Popen[bytes]:
    """A worker in a session of its own (the keys of the terminal are not for it), with no environment."""
    paths = dict.fromkeys(
        str(Path(module.__file__ or "").resolve().parents[1]) for module in (workbench, jinja2, markupsafe)
    )
    told = asdict(limits)
    worker = subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", "-c", _PROGRAM, json.dumps(list(paths)), json.dumps(told)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        cwd="/",
        env={},
        start_new_session=True,
    )
    for pipe in (_pipe(worker.stdin), _pipe(worker.stdout)):
        os.set_blocking(pipe.fileno(), False)
    return worker


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _exchange(worker: subprocess.Popen[bytes], request: bytes, limits: RenderLimits) -> bytes:
    """Send a request and read the whole answer. Raises _NoAnswer if the worker ends, hangs or answers too much."""
    given, answers = _pipe(worker.stdin), _pipe(worker.stdout)
    deadline = time.monotonic() + limits.wall_s
    rest, got = memoryview(request), bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(given, selectors.EVENT_WRITE)
        ready.register(answers, selectors.EVENT_READ)
        while len(got) < HEAD.size or len(got) < HEAD.size + HEAD.unpack_from(got)[0]:
            left = deadline - time.monotonic()
            if left <= 0:
                raise _NoAnswer(f"it gave no text within {limits.wall_s:g} seconds")
            for key, _ in ready.select(left):
                if key.fileobj is answers:
                    if not (data := os.read(answers.fileno(), _CHUNK)):
                        raise _NoAnswer
                    got += data
                    continue
                try:
                    rest = rest[os.write(given.fileno(), rest[:_CHUNK]) :]
                except BrokenPipeError:
                    raise _NoAnswer from None
                if not rest:
                    ready.unregister(given)
            if len(got) > limits.answer_bytes:
                raise _NoAnswer("it makes too much text")
    return bytes(got[HEAD.size :])


def _fault(message: str, template: str) -> TemplateFault:
    """A fault without a line of its own: at the first tag."""
    line = (
        template[: max(0, min((at for at in map(template.find, ("{{", "{%")) if at >= 0), default=0))].count("\n") + 1
    )
    return TemplateFault(message, line, first_tag(template, line))
