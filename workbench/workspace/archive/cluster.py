"""Shares done by a cluster of ``dask.distributed``: import this module only where the extra ``dask`` is installed."""

from __future__ import annotations

import logging
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from typing import Any
from urllib.parse import urlsplit

from distributed import Client, KilledWorker, as_completed

from workbench import __version__
from workbench.analysis.shares import Share
from workbench.workspace.archive.workers import TRIES, Lost, Part, R, Splitting, T, Work, WorkersFault

_SECONDS = 10.0
"""For which a scheduler may take to answer."""
_AHEAD = 2
"""Shares for each thread of the cluster: one that it does, and the next one."""
_LOST = "the processes that worked on it were lost one after the other"


class Cluster:
    """The workers of a scheduler. Dask itself gives the share of a lost worker to another one."""

    def __init__(self, address: str, told: Callable[[str], None] = lambda text: None) -> None:
        """``address``: ``tcp://HOST:PORT``. ``told`` hears of workers that were lost."""
        self._address = address
        self._told = told

    def results(self, work: Work[T, R], shares: Iterable[Share[T]]) -> Iterator[tuple[Share[T], list[R | Lost]]]:
        """See ``Workers``. Raises WorkersFault where no scheduler answers, or no worker can do it."""
        for name in ("distributed", "distributed.client"):  # What they say is said here in a sentence.
            logging.getLogger(name).setLevel(logging.CRITICAL)
        with self._connected() as client:
            yield from _Sent(client, work, shares, self._gone, self._told).results()

    def _connected(self) -> Any:
        if not _is_address(self._address):
            raise WorkersFault(
                f"'{self._address}' is not the address of a scheduler, which is like tcp://10.0.0.1:8786"
            )
        try:
            _require_open(self._address)
            client = Client(self._address, timeout=_SECONDS, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as fault:
            raise WorkersFault(
                f"no scheduler answers at {self._address} ({_short(fault)}): "
                "'dask scheduler' starts one, and 'dask worker ADDRESS' its workers"
            ) from None
        try:
            self._check(client)
        except BaseException:
            client.close()
            raise
        return client

    def _check(self, client: Any) -> None:
        """Raises WorkersFault unless the scheduler, which reads what it hands on, and every worker run this version of
        the workbench."""
        who = f"the scheduler at {self._address}"
        try:
            scheduler = str(client.run_on_scheduler(_version))
            who = f"a worker at {self._address}"
            versions: dict[str, Any] = client.run(_version)
        except Exception as fault:  # noqa: BLE001 - whatever a process without our modules raises
            raise WorkersFault(
                f"{who} cannot run the workbench ({_short(fault)}): install cascade-workbench {__version__} there"
            ) from None
        if scheduler != __version__:
            raise WorkersFault(f"the scheduler must have version {__version__} of the workbench, and has {scheduler}")
        if not versions:
            raise WorkersFault(
                f"the scheduler at {self._address} has no worker: 'dask worker {self._address}' starts one"
            )
        others = sorted(f"{where} has {version}" for where, version in versions.items() if version != __version__)
        if others:
            raise WorkersFault(f"the workers must have version {__version__} of the workbench, but {others[0]}")

    def _gone(self) -> WorkersFault:
        return WorkersFault(f"the scheduler at {self._address} went away")


def _is_address(address: str) -> bool:
    """Returns whether it names a host and a port; without a scheme it is that of a server of TCP."""
    where = urlsplit(address if "://" in address else f"tcp://{address}")
    try:
        return where.scheme not in ("tcp", "tls") or bool(where.hostname and where.port)
    except ValueError:  # The port is no number.
        return False


def _require_open(address: str) -> None:
    """Raises OSError if no scheduler listens there: dask would try again until its time is over, and wait for another
    server, which does not speak first, for ever."""
    where = urlsplit(address if "://" in address else f"tcp://{address}")
    if where.scheme in ("tcp", "tls") and where.hostname and where.port:
        with socket.create_connection((where.hostname, where.port), _SECONDS) as connection:
            if where.scheme == "tcp" and not _speaks(connection):
                raise OSError("what listens there is another server")


def _speaks(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return False


def _version() -> str:
    """Runs in the workers."""
    return __version__


def _short(fault: BaseException) -> str:
    return (str(fault).strip().splitlines() or [type(fault).__name__])[0][:200]


class _Sent:
    """Shares on their way through a cluster."""

    def __init__(
        self,
        client: Any,
        work: Work[Any, Any],
        shares: Iterable[Share[Any]],
        gone: Callable[[], WorkersFault],
        told: Callable[[str], None],
    ) -> None:
        self._client, self._work, self._gone, self._told = client, work, gone, told
        # Dask has tried a share several times before it gives up.
        self._left = (Part(Splitting(share), 0, share.items, TRIES - 1) for share in shares)
        self._again: deque[Part[Any]] = deque()
        self._parts: dict[str, Part[Any]] = {}
        """By the key of their future."""

    def results(self) -> Iterator[tuple[Share[Any], list[Any]]]:
        threads: dict[str, int] = self._client.nthreads()
        sent = as_completed(loop=self._client.loop)
        for _ in range(_AHEAD * max(1, sum(threads.values()))):
            self._send(sent)
        while self._parts:
            try:
                future = next(sent)
            except StopIteration:
                return
            part = self._parts.pop(future.key)
            found = self._result(future, part)
            future.release()
            self._send(sent)
            if found is not None and (whole := part.of.add(part.at, found)) is not None:
                yield part.of.share, whole

    def _send(self, sent: Any) -> None:
        part = self._again.popleft() if self._again else next(self._left, None)
        if part is None:
            return
        try:
            future = self._client.submit(self._work, part.items, pure=False)
        except Exception as fault:
            raise self._gone() from fault
        self._parts[future.key] = part
        sent.add(future)

    def _result(self, future: Any, part: Part[Any]) -> list[Any] | None:
        try:
            found: list[Any] = future.result()
        except KilledWorker:
            parts = part.after_loss()
            if not parts:
                self._told("a worker of the cluster was lost at one item again and again: it is left out")
                return [Lost(_LOST)]
            self._again.extend(parts)
            return None
        except CancelledError:
            raise self._gone() from None
        return found
