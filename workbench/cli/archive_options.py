"""Options and progress shared by ``sweep``, ``import`` and ``test run``: the workers, how far they are, and how a
person stops them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from workbench.child_process import cores
from workbench.cli.errors import Exit, Failure
from workbench.cli.options import together
from workbench.cli.printer import talk
from workbench.extras import missing
from workbench.views.numbers import plural, seconds
from workbench.workspace.archive.table_file import ENDINGS
from workbench.workspace.archive.workers import Here, Processes, WorkersFault

if TYPE_CHECKING:
    from workbench.workspace.archive.workers import ArchiveProgress, Workers


working = together(
    click.option("--processes", type=click.IntRange(1, 1024), metavar="N", help="Processes. Default: all cores."),
    click.option("--dask", metavar="ADDRESS", help="Use a Dask cluster; ADDRESS is its scheduler: tcp://HOST:8786."),
)
"""The options that say who does the work."""


def workers_of(processes: int | None, dask: str | None) -> Workers:
    """Returns who does the work. Raises Failure where both are named, or the extra for clusters is missing."""
    if dask is not None:
        if processes is not None:
            raise Failure(Exit.USAGE, "--processes and --dask exclude each other", hint="a cluster has its own")
        if absent := missing("dask"):
            raise Failure(Exit.USAGE, absent)
        from workbench.workspace.archive.cluster import Cluster  # dask.distributed takes 400 ms

        return Cluster(dask, _lost)
    count = processes or cores()
    return Here() if count == 1 else Processes(count, _lost)


def _lost(text: str) -> None:
    talk(text, "warning")


def require_table_file(file: Path) -> None:
    """Raises Failure for a name whose ending is none that tables are written to."""
    if file.suffix.lower() not in ENDINGS:
        raise Failure(Exit.USAGE, f"a table goes to a file that ends in {', '.join(ENDINGS)}", file=str(file))


@contextmanager
def cut_off(done: Callable[[], str]) -> Iterator[None]:
    """Ctrl+C, and workers that cannot go on, end the command with what is done, and with how it goes on. ``done`` says
    it in words; empty where nothing is."""
    try:
        yield
    except KeyboardInterrupt:
        raise Failure(
            int(Exit.INTERRUPTED), f"stopped: {done() or 'nothing'} done; the same command continues"
        ) from None
    except WorkersFault as fault:
        did = done()
        raise Failure(Exit.FAILED, f"{fault}; {did} done, the same command continues" if did else str(fault)) from None


def done_words(progress: ArchiveProgress) -> str:
    """``312 of 1,000 runs``; empty for none."""
    return f"{progress.done:,} of {plural(progress.total, progress.noun)}" if progress.done else ""


def archive_words(progress: ArchiveProgress) -> str:
    """``312/1,000 runs · 41.2/s · 17s left``."""
    parts = [f"{progress.done:,}/{plural(progress.total, progress.noun)}"]
    if progress.rate is not None:
        parts.append(f"{progress.rate:.1f}/s")
    if progress.remaining is not None and progress.done < progress.total:
        parts.append(f"{seconds(progress.remaining)} left")
    return " · ".join(parts)


def going_on(progress: ArchiveProgress, began: str) -> None:
    """Say that the command goes on with what an earlier one did."""
    if progress.earlier:
        told = f"continues what began at {began}: {progress.earlier:,} of {plural(progress.total, progress.noun)}"
        talk(f"{told} are done (--anew starts over)", "dim")
