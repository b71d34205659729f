"""The worker: reads templates with their values, renders each under limits, and writes what came of it.

Requests and answers are JSON behind their length (four bytes, big end first). It ends when its input does. Nothing is
opened after the first request: neither files nor connections.
"""

from __future__ import annotations

import contextlib
import json
import math
import resource
import signal
import struct
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, BinaryIO

from msgspec import Struct

from workbench.language.templates.limits import LimitReached
from workbench.language.templates.names import TemplateFault
from workbench.language.templates.sandbox import SANDBOX, unpacked
from workbench.language.templates.template import Renderer

# What one rendering may take, and what the worker is told of it.

MEGABYTE = 1 << 20


class RenderLimits(Struct, frozen=True):
    """Limits of one rendering in a process of its own."""

    cpu_s: float = 2.0
    """Seconds of computing: a machine that is busy with other things takes nothing away from a template."""
    wall_s: float = 30.0
    """Seconds until the worker counts as stuck, whatever it does."""
    memory_bytes: int = 512 * MEGABYTE
    answer_bytes: int = 16 * MEGABYTE
    """Of an answer: a text of 1 MB (``template_limits``) as JSON, and the places of undefined names."""

    def slow(self) -> str:
        return f"it takes more than {self.cpu_s:g} seconds of computing"

    def large(self) -> str:
        return f"it needs more than {self.memory_bytes // MEGABYTE} MB of memory"


HEAD = struct.Struct(">I")
_AGAIN_S = 0.2
"""Between two signals, should something swallow the first."""
_FIRST = (
    "{{ '\\N{BULLET} a b'|wordwrap(3)|urlencode }}{{ '%d'|format(1) }}{{ {}|tojson }}{{ [1, 2]|sum|filesizeformat }}",
    "{{ 1 + }}",
    "{{ x.__class__ }}",
)
"""The modules that Python and Jinja import at their first use: they must be here before nothing can be opened any
more."""
_EVERY = ("{{ x|%s }}", "{{ x|%s('a') }}"), ("{{ x is %s }}", "{{ x is %s('a') }}")
"""The same of each filter, and of each test."""


def main(limits: RenderLimits) -> None:
    """Answer until the input ends."""
    shut_in(limits)
    given, answers, render = sys.stdin.buffer, sys.stdout.buffer, Renderer()
    while (request := _read(given)) is not None:
        answer = rendered(render, request, limits)
        data = json.dumps(answer).encode("ascii")
        answers.write(HEAD.pack(len(data)) + data)
        answers.flush()
        if answer.get("ends"):
            return


def shut_in(limits: RenderLimits) -> None:
    """Give up files, connections, processes and all memory but the limit's."""
    for template in _first():
        with contextlib.suppress(TemplateFault):
            Renderer()(template, {"x": "<b>a</b>"})
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 3),
        (resource.RLIMIT_AS, limits.memory_bytes),
    ):
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.nullcontext() if sys.platform == "linux" else contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))

    def late(_signal: int, _frame: FrameType | None) -> None:
        raise LimitReached(limits.slow())

    signal.signal(signal.SIGPROF, late)


def _first() -> Iterator[str]:
    yield from _FIRST
    for names, forms in zip((SANDBOX.filters, SANDBOX.tests), _EVERY, strict=True):
        for form in forms:
            yield from (form % name for name in names if name.isidentifier())


def rendered(render: Renderer, request: dict[str, Any], limits: RenderLimits) -> dict[str, Any]:
    """One template: ``text`` and ``undefined``, or the ``fault`` and its place. ``ends``: the worker is of no more
    use afterwards."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    # What never comes back to Python cannot be told by a signal: the kernel ends it.
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + 2 * limits.cpu_s) + 1, hard))
    try:
        signal.setitimer(signal.ITIMER_PROF, limits.cpu_s, _AGAIN_S)
        try:
            done = render(request["template"], unpacked(request["names"]))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        return {"text": done.text, "undefined": done.undefined}
    except TemplateFault as fault:
        if isinstance(fault.__cause__, MemoryError):
            return {"fault": [limits.large(), fault.line, fault.column], "ends": True}
        return {"fault": [fault.message, fault.line, fault.column]}
    except LimitReached as fault:  # While the template was read.
        return {"fault": [str(fault), 1, 1]}


def _read(given: BinaryIO) -> dict[str, Any] | None:
    head = given.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    request: dict[str, Any] = json.loads(given.read(HEAD.unpack(head)[0]))
    return request
