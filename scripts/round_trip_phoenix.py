"""Sends runs as spans to a real Phoenix and imports what it gives back: no message, call, tool or count may be lost.

    python3 -m venv /tmp/phoenix && /tmp/phoenix/bin/pip install arize-phoenix
    .venv/bin/python -m scripts.round_trip_phoenix /tmp/phoenix/bin/python

Phoenix has an environment of its own, because its requirements are not this project's. It listens on loopback alone,
keeps its data in a folder that is deleted, and is ended with the script. Prints a line for each run; exits with 1 if
anything differs.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from workbench.engine.journal.state import RunState
from workbench.importers.spans import spans_of
from workbench.workspace.home import copy_examples
from workbench.workspace.project import Project

EXAMPLES = ("log_triage", "debug_agent", "help_desk", "diff_review")
STARTING_S = 180
"""Phoenix makes its database when it starts."""
ARRIVING_S = 60
# Phoenix takes protobuf alone, and its environment has the library for it.
ENCODE = """
import base64, json, sys
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
body = json.load(sys.stdin)
for resource in body["resourceSpans"]:
    for scope in resource["scopeSpans"]:
        for span in scope["spans"]:
            for key in ("traceId", "spanId", "parentSpanId"):
                span[key] = base64.b64encode(bytes.fromhex(span.get(key, ""))).decode()
sys.stdout.buffer.write(ParseDict(body, ExportTraceServiceRequest()).SerializeToString())
"""
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def asked(url: str, data: bytes | None = None) -> bytes:
    headers = {"content-type": "application/x-protobuf"} if data is not None else {}
    with _OPENER.open(urllib.request.Request(url, data, headers), timeout=30) as response:
        body: bytes = response.read()
    return body


def workbench(*arguments: str) -> str:
    command = [sys.executable, "-m", "workbench", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def sent(python: str, url: str, document: str) -> int:
    """Send one OTLP document; how many spans it has."""
    encoded = subprocess.run([python, "-c", ENCODE], input=document.encode(), check=True, capture_output=True).stdout
    asked(f"{url}/v1/traces", encoded)
    scopes = json.loads(document)["resourceSpans"][0]["scopeSpans"]
    return sum(len(scope["spans"]) for scope in scopes)


def given_back(url: str, trace: str, wanted: int) -> list[dict[str, Any]]:
    """The spans of a trace, when all have arrived or the time is over."""
    deadline = time.monotonic() + ARRIVING_S
    while True:
        body = json.loads(asked(f"{url}/v1/projects/default/spans/otlpv1?limit=1000"))
        found = [span for span in body["data"] if hexadecimal(span["trace_id"]) == trace]
        if len(found) >= wanted or time.monotonic() > deadline:
            return found
        time.sleep(0.5)


def hexadecimal(identifier: str) -> str:
    """An id as OTLP's JSON has it, of one in base64 or in that form already."""
    try:
        return bytes.fromhex(identifier).hex()
    except ValueError:
        return base64.b64decode(identifier).hex()


def what_calls_saw(state: RunState) -> list[Any]:
    """For each call: what it was sent, what it answered, and what the provider counted."""
    return sorted(
        (
            [(m.role, m.text, [(c.id, c.name, c.arguments) for c in m.tool_calls]) for m in said if m is not None],
            [call.usage.input, call.usage.output, call.usage.cached],
            call.model,
        )
        for call in state.calls
        for said in [[*(entry.sent for entry in call.entries), call.answer]]
    )


def round_trip(project: Project, python: str, url: str, name: str) -> bool:
    """Run an example, send it, import what came back. Returns whether all calls are the same."""
    workbench("run", f"cascades/{name}.yaml", "-m", "offline", "--session", name, "--quiet")
    run_id = project.store.find(name)
    document = workbench("export", name, "--as", "otel")
    spans = sent(python, url, document)
    trace = json.loads(document)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"]
    back = given_back(url, trace, spans)
    Path(f"{name}.back.json").write_text(json.dumps({"data": back}))
    (imported,) = json.loads(workbench("import", f"{name}.back.json", "--json"))
    before, after = (what_calls_saw(project.store.state(one)) for one in (run_id, imported["run_id"]))
    alike = sum(one == other for one, other in zip(before, after, strict=False))
    shown = sum("llm.output_messages.0.message.role" in span.attributes for span in spans_of({"data": back}))
    calls = len(before)
    print(
        f"{name}: {len(back)} of {spans} spans, {shown} of {calls} answers shown, {alike} of {calls} calls as they were"
    )
    return len(back) == spans and shown == calls and before == after


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="Python of an environment that has arize-phoenix")
    parser.add_argument("--examples", nargs="+", default=EXAMPLES)
    options = parser.parse_args()
    python = str(Path(options.python).absolute())
    version = subprocess.run(
        [python, "-c", "from importlib.metadata import version; print(version('arize-phoenix'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["WORKBENCH_STATE_DIR"] = os.environ["WORKBENCH_CONFIG_DIR"] = f"{folder}/state"
        copy_examples(Path("cascades"))
        variables = {
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(free_port()),
            "PHOENIX_WORKING_DIR": f"{folder}/phoenix",
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        log = Path(f"{folder}/phoenix.log").open("w")  # noqa: SIM115 - closed below, after the server
        command = [python, "-m", "phoenix.server.main", "serve"]
        server = subprocess.Popen(command, env=os.environ | variables, stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        try:
            deadline = time.monotonic() + STARTING_S
            while True:
                try:
                    asked(f"{url}/openapi.json")
                    break
                except OSError:
                    if server.poll() is not None or time.monotonic() > deadline:
                        print(Path(f"{folder}/phoenix.log").read_text()[-2000:], file=sys.stderr)
                        return 1
                    time.sleep(0.5)
            print(f"arize-phoenix {version}")
            project = Project.at(Path(folder))
            failed = [name for name in options.examples if not round_trip(project, python, url, name)]
            return 1 if failed else 0
        finally:
            server.terminate()
            server.wait(30)
            log.close()


if __name__ == "__main__":
    sys.exit(main())
