"""Runs sent as spans while they happen: a collector gets what the file says, and one that is away harms nobody."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.command import run_cli
from tests.support.workspaces import GREETING, filled
from workbench.exporters.live_otel import endpoint_of
from workbench.exporters.otel import CallTimes, OtelSpan, RunSpans
from workbench.store.store import Store
from workbench.workspace.recorded_runs import StoredImages

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class Collector:
    """Takes OTLP over HTTP on loopback."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.requests.append((self.path, dict(self.headers), body))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *words: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @property
    def spans(self) -> list[tuple[str, Any]]:
        """All that came, each with the name of its service."""
        found = []
        for _, _, body in self.requests:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                service = next(
                    one.value.string_value for one in resource.resource.attributes if one.key == "service.name"
                )
                found += [(service, span) for scope in resource.scope_spans for span in scope.spans]
        return found


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector._server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector._server.shutdown()
        collector._server.server_close()
        thread.join()


@pytest.fixture
def folder(folder: Path) -> Path:
    return filled(folder, GREETING)


def exported(name: str) -> list[OtelSpan]:
    store = Store(Path(".workbench"))
    run_id = store.find(name)
    times = CallTimes()
    for event in store.events(run_id):
        times.take(event)
    return list(RunSpans(store.state(run_id), times, StoredImages(store, run_id)).all())


def plain(value: Any) -> Any:
    """An attribute of protobuf."""
    kind = value.WhichOneof("value")
    return [plain(one) for one in value.array_value.values] if kind == "array_value" else getattr(value, kind)


def test_a_collector_gets_the_spans_of_the_file_once_each(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        monkeypatch.setenv(ENDPOINT, collector.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc")
        assert run_cli("run", "greet.yaml", "--session", "greet", "-q").code == 0
    path, headers, _ = collector.requests[0]
    assert (path, headers["authorization"]) == ("/v1/traces", "Bearer abc")
    wanted = exported("greet")
    assert {service for service, _ in collector.spans} == {"greet"}
    assert sorted(
        (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), span.name, span.start_time_unix_nano)
        for _, span in collector.spans
    ) == sorted((span.trace_id, span.span_id, span.parent_id, span.name, span.start) for span in wanted)
    told = {span.span_id.hex(): {one.key: plain(one.value) for one in span.attributes} for _, span in collector.spans}
    assert told == {span.span_id: span.attributes for span in wanted}


def test_texts_stay_here_where_the_standard_variable_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        monkeypatch.setenv(ENDPOINT, collector.url)
        monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "false")
        assert run_cli("run", "greet.yaml", "-q").code == 0
    assert len(collector.spans) == 10
    assert not any(b"Ada" in body for _, _, body in collector.requests)


def test_an_endpoint_that_is_away_is_said_once_and_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting() as collector:
        gone = collector.url
    monkeypatch.setenv(ENDPOINT, gone)
    ended = run_cli("run", "greet.yaml", "--session", "alone")
    assert ended.code == 0
    assert ended.err.count(f"spans do not arrive at {gone}: Connection refused; check {ENDPOINT}\n") == 1
    assert Store(Path(".workbench")).summary(Store(Path(".workbench")).find("alone")).status == "success"
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name == "spans" or name.startswith("Otel")], "it is not tried for ever"


@pytest.mark.parametrize(
    ("env", "endpoint"),
    [
        ({}, ""),
        ({ENDPOINT: "http://a"}, "http://a"),
        ({ENDPOINT: "http://a", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b/x"}, "http://b/x"),
        ({ENDPOINT: "http://a", "OTEL_SDK_DISABLED": "true"}, ""),
        ({ENDPOINT: "http://a", "OTEL_TRACES_EXPORTER": "none"}, ""),
    ],
)
def test_the_standard_variables_say_where_spans_go(env: dict[str, str], endpoint: str) -> None:
    assert endpoint_of(env) == endpoint
