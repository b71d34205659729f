"""Sweeps, imports and replays by a cluster of dask.distributed: a scheduler and workers, processes of their own."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import Workbench
from tests.support.command import WORKBENCH, Ended
from tests.support.conversations import write_lines
from tests.support.extras import needs
from tests.support.waiting import PATIENCE, until

needs("distributed", extra="dask")
CLUSTER = """
import asyncio, sys
if "without" in sys.argv:
    sys.modules["workbench"] = None
from distributed import Scheduler, Worker

async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            await Worker(scheduler.address, nthreads=1, dashboard=False)
            print("a worker", flush=True)

asyncio.run(main())
"""
"""A scheduler that tells its address; each line of its input starts a worker beside it, and the end of that ends it."""
SPEC = ("sweep", "-f", "calls>0", "-s", "mask(after=1..2)", "--json", "-q")
ROOT = Path(__file__).parents[2]


@contextmanager
def process(*command: str) -> Iterator[subprocess.Popen[str]]:
    """A program of Python, by its arguments."""
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


class Cluster:
    """A scheduler, and workers in its process."""

    def __init__(self, running: subprocess.Popen[str]) -> None:
        self._running = running
        self.address = self._said()

    def _said(self) -> str:
        assert self._running.stdout is not None
        return self._running.stdout.readline().strip()

    def begin_worker(self) -> None:
        """Start one; the scheduler knows it."""
        assert self._running.stdin is not None
        print(file=self._running.stdin, flush=True)
        assert self._said() == "a worker"


@contextmanager
def clustered(*arguments: str) -> Iterator[Cluster]:
    with process("-c", CLUSTER, *arguments) as running:
        yield Cluster(running)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One without a worker, until a test starts one."""
    with clustered() as one:
        yield one


@contextmanager
def workers(scheduler: str, count: int) -> Iterator[Sequence[subprocess.Popen[str]]]:
    """Workers in processes of their own, which the scheduler knows."""
    from distributed import Client

    command = ("-m", "distributed.cli.dask_worker", scheduler, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    with ExitStack() as stack:
        running = [stack.enter_context(process(*command)) for _ in range(count)]
        with Client(scheduler, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=PATIENCE)
        yield running


def test_a_scheduler_without_the_workbench_is_told_what_to_install(folder: Path, here: Workbench) -> None:
    write_lines(folder / "a.jsonl", 2)
    assert here("import", "a.jsonl").code == 0
    with clustered("without") as other:
        other.begin_worker()
        told = here(*SPEC, "--plain", "--dask", other.address)
    assert f"the scheduler at {other.address} cannot run the workbench" in told.err + told.out
    assert "install cascade-workbench" in told.err + told.out


def test_what_is_not_there_is_told_with_what_to_start(cluster: Cluster, folder: Path, here: Workbench) -> None:
    write_lines(folder / "a.jsonl", 2)
    assert here("import", "a.jsonl").code == 0
    nobody = here(*SPEC, "--plain", "--dask", "tcp://127.0.0.1:9")
    assert "no scheduler answers at tcp://127.0.0.1:9" in nobody.err + nobody.out
    for other in ("nonsense", "tcp://lab", "tcp://lab:port"):
        no_address = here(*SPEC, "--plain", "--dask", other)
        told = f"'{other}' is not the address of a scheduler, which is like tcp://10.0.0.1:8786"
        assert told in no_address.err + no_address.out
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        other_server = here(*SPEC, "--plain", "--dask", address)
    assert f"no scheduler answers at {address} (what listens there is another server)" in other_server.err
    idle = here(*SPEC, "--dask", cluster.address)
    assert f"has no worker: 'dask worker {cluster.address}' starts one" in idle.err + idle.out


def test_a_cluster_gives_the_bytes_of_one_process(cluster: Cluster, folder: Path, here: Workbench) -> None:
    """It replays frozen runs, imports, and sweeps."""
    cluster.begin_worker()
    sweep = replayed_imported_and_swept_alone(cluster.address, 6, folder, here)
    swept = here(*SPEC, "--dask", cluster.address, "-o", "cluster/rows.parquet")
    assert swept.code == 0, swept.err
    assert swept.out == sweep.out
    assert (folder / "cluster" / "rows.parquet").read_bytes() == (folder / "alone" / "rows.parquet").read_bytes()


@pytest.mark.proof
def test_a_cluster_that_loses_a_worker_gives_the_bytes_of_one_process(folder: Path, here: Workbench) -> None:
    """At the sweep it loses one of two workers, which are processes of their own."""
    with clustered() as one, workers(one.address, 2) as two:
        alone = replayed_imported_and_swept_alone(one.address, 40, folder, here)
        command = [*WORKBENCH, *SPEC, "--dask", one.address, "-o", "cluster/rows.parquet"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            until(lambda: any((folder / ".workbench" / "work").glob("*/done/*")), "the first share")
            two[0].send_signal(signal.SIGKILL)
            out, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err.decode()
    assert out.decode() == alone.out
    assert (folder / "cluster" / "rows.parquet").read_bytes() == (folder / "alone" / "rows.parquet").read_bytes()


def replayed_imported_and_swept_alone(scheduler: str, runs: int, folder: Path, here: Workbench) -> Ended:
    """Frozen runs and an import by the cluster; and how the sweep over what was imported ends by one process."""
    lines = write_lines(folder / "a.jsonl", runs)
    for name in ("alone", "cluster"):
        (folder / name).mkdir()
    freeze_three(folder, here)
    replayed = here("test", "run", "--json")
    assert [one["passed"] for one in replayed.json] == [True, True, False]
    by_cluster = here("test", "run", "--json", "--dask", scheduler)
    assert (by_cluster.code, by_cluster.out) == (1, replayed.out)
    assert here("test", "run", "--json", "--processes", "2").out == replayed.out
    told = here("import", str(lines), "--json", "--dask", scheduler)
    assert len(told.json) == runs, told.err
    return here(*SPEC, "--processes", "1", "-o", "alone/rows.parquet")


def freeze_three(folder: Path, here: Workbench) -> None:
    """Freeze three runs of a cascade that then changes for the last of them."""
    text = "cascade_id: flow\nphases: [{{name: p, instructions: 'Say {}.'}}]\n"
    (folder / "flow.yaml").write_text(text.format("{{ input.n }}"))
    (folder / "rows.jsonl").write_text('{"n": 1}\n{"n": 2}\n{"n": 3}\n')
    made = here("batch", "flow.yaml", "-i", "rows.jsonl", "-m", "offline", "--unscripted", "ok", "--freeze", "some")
    assert made.code == 0, made.err
    (folder / "flow.yaml").write_text(text.format("{{ input.n if input.n < 3 else 9 }}"))
