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
from tests.support.command import WORKBENCH
from tests.support.conversations import write_lines
from tests.support.extras import needs
from tests.support.waiting import PATIENCE, until

needs("distributed", extra="dask")
RUNS = 40
SPEC = ("sweep", "-f", "calls>0", "-s", "mask(after=1..2)", "--json", "-q")
ROOT = Path(__file__).parents[2]


@contextmanager
def process(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program of Python: a module with its arguments, or what follows ``-c``."""
    with subprocess.Popen(
        [sys.executable, *(() if command[0] == "-c" else ("-m",)), *command],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler."""
    with scheduling("distributed.cli.dask_scheduler") as address:
        yield address


@contextmanager
def scheduling(*program: str) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with process(*program, "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"):
        until(lambda: answers(port), "the scheduler")
        yield f"tcp://127.0.0.1:{port}"


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def workers(scheduler: str, count: int) -> Iterator[Sequence[subprocess.Popen[bytes]]]:
    """Workers that the scheduler knows."""
    from distributed import Client

    command = ("distributed.cli.dask_worker", scheduler, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    with ExitStack() as stack:
        running = [stack.enter_context(process(*command)) for _ in range(count)]
        with Client(scheduler, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=PATIENCE)
        yield running


def test_a_scheduler_without_the_workbench_is_told_what_to_install(folder: Path, workbench: Workbench) -> None:
    write_lines(folder / "a.jsonl", 2)
    assert workbench("import", "a.jsonl").code == 0
    without = "import sys; sys.modules['workbench'] = None; from distributed.cli.dask_scheduler import main; main()"
    with scheduling("-c", without) as address, workers(address, 1):
        told = workbench(*SPEC, "--plain", "--dask", address)
    assert f"the scheduler at {address} cannot run the workbench" in told.err + told.out
    assert "install cascade-workbench" in told.err + told.out


def test_what_is_not_there_is_told_with_what_to_start(scheduler: str, folder: Path, here: Workbench) -> None:
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
    idle = here(*SPEC, "--dask", scheduler)
    assert f"has no worker: 'dask worker {scheduler}' starts one" in idle.err + idle.out


def test_a_cluster_that_loses_a_worker_gives_the_bytes_of_one_process(
    scheduler: str, folder: Path, here: Workbench
) -> None:
    """It replays frozen runs, imports, and sweeps; at the sweep it loses one of two workers."""
    lines = write_lines(folder / "a.jsonl", RUNS)
    for name in ("alone", "cluster"):
        (folder / name).mkdir()
    freeze_three(folder, here)
    with workers(scheduler, 2) as two:
        replayed = here("test", "run", "--json")
        assert [one["passed"] for one in replayed.json] == [True, True, False]
        cluster = here("test", "run", "--json", "--dask", scheduler)
        assert (cluster.code, cluster.out) == (1, replayed.out)
        assert here("test", "run", "--json", "--processes", "2").out == replayed.out

        told = here("import", str(lines), "--json", "--dask", scheduler)
        assert len(told.json) == RUNS, told.err
        alone = here(*SPEC, "--processes", "1", "-o", "alone/rows.parquet")
        command = [*WORKBENCH, *SPEC, "--dask", scheduler, "-o", "cluster/rows.parquet"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            until(lambda: any((folder / ".workbench" / "work").glob("*/done/*")), "the first share")
            two[0].send_signal(signal.SIGKILL)
            out, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err.decode()
    assert out.decode() == alone.out
    assert (folder / "cluster" / "rows.parquet").read_bytes() == (folder / "alone" / "rows.parquet").read_bytes()


def freeze_three(folder: Path, here: Workbench) -> None:
    """Freeze three runs of a cascade that then changes for the last of them."""
    text = "cascade_id: flow\nphases: [{{name: p, instructions: 'Say {}.'}}]\n"
    (folder / "flow.yaml").write_text(text.format("{{ input.n }}"))
    (folder / "rows.jsonl").write_text('{"n": 1}\n{"n": 2}\n{"n": 3}\n')
    made = here("batch", "flow.yaml", "-i", "rows.jsonl", "-m", "offline", "--unscripted", "ok", "--freeze", "some")
    assert made.code == 0, made.err
    (folder / "flow.yaml").write_text(text.format("{{ input.n if input.n < 3 else 9 }}"))
