"""``workbench serve``: who is let in, what can be read, and how it ends."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.serving import CASCADE, Server, is_alive, served
from tests.store.examples import Writer
from tests.support.command import Cli, run_cli
from tests.support.waiting import PATIENCE, until
from tests.support.workspaces import alone
from workbench.cli.serving.guard import Guard, Request
from workbench.context.place import Place
from workbench.store.store import Store
from workbench.views.numbers import spent_cell
from workbench.workspace.project import Project

TOKEN = "a-token-of-a-test-0123"
GOOD = Request(host="127.0.0.1:8321", cookie=TOKEN)


def judged(**changes: Any) -> int:
    """The status of a refusal; 0 for none."""
    request = Request(**{**{"host": "127.0.0.1:8321", "cookie": TOKEN}, **changes})
    refusal = Guard(TOKEN, 8321).refusal(request)
    return refusal.status if refusal is not None else 0


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"cookie": "", "query": TOKEN},
        {"cookie": "", "bearer": TOKEN},
        {"host": "localhost:8321"},
        {"host": "LOCALHOST:8321", "origin": "http://localhost:8321"},
        {"origin": "http://127.0.0.1:8321", "upgrade": True, "site": "same-origin"},
        {"cookie": "", "query": TOKEN, "site": "cross-site"},
        {"cookie": "", "shared": True, "site": "cross-site"},
    ],
)
def test_who_has_the_token_and_comes_from_here_is_let_in(changes: dict[str, Any]) -> None:
    assert judged(**changes) == 0


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"cookie": ""}, 403),
        ({"cookie": TOKEN[:-1]}, 403),
        ({"cookie": TOKEN + "x"}, 403),
        ({"cookie": "\ud800"}, 403),
        ({"host": "evil.example:8321"}, 403),
        ({"host": "127.0.0.1:9999"}, 403),
        ({"host": "127.0.0.1"}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:8321"}, 403),
        ({"origin": "https://127.0.0.1:8321"}, 403),
        ({"upgrade": True}, 403),
        ({"upgrade": True, "origin": "http://evil.example"}, 403),
        ({"site": "cross-site"}, 403),
        ({"method": "POST"}, 405),
        ({"method": "DELETE"}, 405),
        ({"cookie": "", "shared": True, "upgrade": True, "origin": "http://127.0.0.1:8321"}, 403),
        ({"cookie": "", "shared": True, "host": "evil.example:8321"}, 403),
        ({"cookie": "", "shared": True, "origin": "http://evil.example"}, 403),
        ({"cookie": "", "shared": True, "method": "POST"}, 405),
    ],
)
def test_everybody_else_is_refused(changes: dict[str, Any], status: int) -> None:
    assert judged(**changes) == status


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    (folder / "served.yaml").write_text(CASCADE)
    (folder / "served.replies.yaml").write_text("replies: {lighthouse: [{text: A light.}]}\n")
    with pytest.MonkeyPatch.context() as patch:
        alone(patch, folder, folder)
        done = run_cli("run", "served.yaml", "--session", "first-run")
    assert done.code == 0, done.err
    with served(folder) as it:
        yield it


@pytest.mark.parametrize("path", ["/", "/ws", "/static/js/textual.js", "/api/runs", "/download/x", "/nothing"])
def test_without_the_token_everything_is_forbidden(server: Server, path: str) -> None:
    assert server.get(path)[0] == 403
    assert server.get(path, {"Authorization": "Bearer wrong"})[0] == 403
    assert server.get(path, {"Cookie": server.cookie("wrong")})[0] == 403
    assert server.asked(path, Host="evil.example")[0] == 403
    assert server.asked(path, Origin="http://evil.example")[0] == 403
    assert server.asked(path, Upgrade="websocket")[1] == "a web socket needs an origin\n"


def test_the_token_leaves_the_address_and_becomes_a_cookie(server: Server) -> None:
    status, _, headers = server.get(f"/?token={server.token}")
    assert (status, headers["Location"]) == (303, "/")
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    status, body, _ = server.get("/", {"Cookie": cookie.partition(";")[0]})
    assert status == 200
    assert server.token not in body


def test_a_token_in_the_address_that_is_old_does_not_take_the_right_one_away(server: Server) -> None:
    status, _, headers = server.get("/?token=of-the-server-before", {"Cookie": server.cookie()})
    assert (status, headers["Location"]) == (303, "/")
    assert "Set-Cookie" not in headers


def test_two_servers_share_no_cookie(server: Server) -> None:
    _, _, headers = server.get(f"/?token={server.token}")
    assert headers["Set-Cookie"].partition("=")[0] not in (Guard(TOKEN, 8321).cookie, Guard(TOKEN, 8322).cookie)
    foreign = f"{Guard(TOKEN, 8322).cookie}={TOKEN}"
    assert server.get("/", {"Cookie": f"{foreign}; {server.cookie()}"})[0] == 200


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("short", "has fewer than 16 characters"),
        ("x" * 513, "has more than 512 characters"),
        ("sixteen; or more of them", "holds ';'"),
        ("l\u00f6wenzahn-im-garten", "holds '\\xf6'"),
    ],
)
def test_a_token_that_cannot_be_used_is_refused(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, token: str, why: str
) -> None:
    monkeypatch.setenv("WORKBENCH_TOKEN", token)
    refused = cli("serve", "--port", "0")
    assert refused.code == 2
    assert f"WORKBENCH_TOKEN {why}" in refused.err


def test_the_page_asks_for_nothing_from_elsewhere(server: Server) -> None:
    status, body, headers = server.asked("/")
    assert status == 200
    assert "http://" not in body
    assert "https://" not in body
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY"
    for path in ("/static/js/textual.js", "/static/css/xterm.css", "/static/fonts/RobotoMono-VariableFont_wght.ttf"):
        assert path in body or server.get(path, {"Authorization": f"Bearer {server.token}"}, "HEAD")[0] == 200


def test_runs_can_be_read_and_not_written(server: Server) -> None:
    runs = server.json("/api/runs")
    assert [run["session_id"] for run in runs] == ["first-run"]
    run = server.json("/api/runs/first-run")
    assert run["status"] == "success"
    assert server.asked("/api/runs/nobody")[0] == 404
    assert "no run is named" in server.json("/api/runs/nobody")["error"]
    assert "no run is named" in json.loads(server.asked("/api/runs/nobody", Accept="text/html")[1])["error"]
    assert server.asked("/api/runs/..%2f..%2fetc")[0] == 404
    bearer = {"Authorization": f"Bearer {server.token}"}
    assert server.get("/api/runs", bearer, "POST")[0] == 405


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/runs/nobody", 404, "no run is named &#x27;nobody&#x27;"),
        ("/?run=nobody", 404, "no run is named &#x27;nobody&#x27;"),
        ("/nowhere", 404, "There is no such page."),
        ("/download/gone", 404, "There is no such page."),
    ],
)
def test_a_browser_gets_a_page_for_a_broken_link(server: Server, path: str, status: int, words: str) -> None:
    got, body, headers = server.get(path, {"Cookie": server.cookie(), "Accept": "text/html,*/*;q=0.8"})
    assert (got, headers["Content-Type"]) == (status, "text/html; charset=utf-8")
    assert words in body
    assert '<a href="/runs">' in body


def test_a_browser_without_the_token_gets_a_page_that_says_so(server: Server) -> None:
    status, body, headers = server.get("/runs", {"Accept": "text/html"})
    assert (status, headers["Content-Type"]) == (403, "text/html; charset=utf-8")
    assert "the token is missing or wrong" in body
    assert "href=" not in body


def test_the_tree_and_the_graph_of_a_run_can_be_read(server: Server, folder: Path) -> None:
    tree = server.json("/api/runs/first-run/tree")
    assert [(phase["name"], phase["type"], phase["status"]) for phase in tree["phases"]] == [
        ("lighthouse", "simple", "success")
    ]
    drawn = server.json("/api/runs/first-run/tree?format=react-flow")
    assert [node["data"]["label"] for node in drawn["nodes"]] == ["lighthouse"]
    status, body, _ = server.asked("/api/runs/first-run/tree?format=svg")
    assert (status, json.loads(body)["error"]) == (400, "format=svg is not known; expected tree or react-flow")
    status, body, headers = server.asked("/api/runs/first-run/graph")
    assert (status, headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert body.startswith("flowchart")
    assert '"lighthouse"' in body
    assert server.asked("/api/runs/nobody/tree")[0] == server.asked("/api/runs/nobody/graph")[0] == 404


def test_events_are_streamed_from_where_the_reader_left_off(server: Server) -> None:
    _, body, headers = server.asked("/api/runs/first-run/events")
    assert headers["Content-Type"].startswith("text/event-stream")
    events = [dict(line.partition(": ")[::2] for line in block.split("\n")) for block in body.strip().split("\n\n")]
    assert [event["event"] for event in events][:2] == ["run_started", "phase_started"]
    assert events[-1]["event"] == "end"
    assert [int(event["id"]) for event in events[:-1]] == list(range(1, len(events)))
    assert json.loads(events[0]["data"])["kind"] == "run_started"
    _, rest, _ = server.asked("/api/runs/first-run/events", **{"Last-Event-ID": events[-2]["id"]})
    assert rest.strip() == "event: end\ndata: {}"


NO_HTTP = (
    b"GET /\x00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET " + b"/a" * 9_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00" + bytes(200),
    b"POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" + bytes(20),
)


def linked(folder: Path, *words: str) -> dict[str, Any]:
    """A new link, as ``workbench link --json`` prints it."""
    with pytest.MonkeyPatch.context() as patch:
        alone(patch, folder, folder)
        done = run_cli("link", *words, "--json")
    assert done.code == 0, done.err
    made: dict[str, Any] = json.loads(done.out)
    return made


def address_of(made: dict[str, Any]) -> str:
    """Path and query of a link, without the part that stays in the browser."""
    return "/" + str(made["url"]).split("/", 3)[3].partition("#")[0]


def test_a_run_is_a_page_whose_calls_can_be_pointed_at(server: Server, folder: Path) -> None:
    token = {"Authorization": f"Bearer {server.token}"}
    status, body, headers = server.get("/runs/first-run", token)
    assert status == 200
    assert "text/html" in headers["Content-Type"]
    assert 'id="lighthouse/1/1/1/1"' in body
    assert "A light." in body
    status, body, _ = server.get("/runs", token)
    assert status == 200
    assert "first-run" in body
    assert ">input<" in body
    cost = spent_cell(Project.at(folder).store.runs()[0].spent)
    assert f'<td class="n">{cost}<' in body, "as the list of runs in the app says it"
    status, body, _ = server.get("/?run=first-run", token)
    assert status == 200
    assert "/ws/" in body
    status, body, _ = server.get("/?run=first-run@lighthouse:1", token)
    assert status == 200
    assert "%40lighthouse%2F1%2F1%2F1%2F1" in body
    assert server.get("/?run=first-run@lighthouse:7", token)[0] == 404
    assert server.get("/runs/nothing", token)[0] == 404
    assert server.get("/?run=nothing", token)[0] == 404


def test_a_link_shows_its_run_and_nothing_else_until_it_is_revoked(server: Server, folder: Path) -> None:
    made = linked(folder, "first-run", "--call", "lighthouse:1")
    assert made["url"].endswith("#lighthouse/1/1/1/1")
    assert made["url"].startswith(f"{server.url}/runs/")
    there = address_of(made)
    status, body, _ = server.get(there)
    assert status == 200
    assert "A light." in body
    secret = there.partition("?link=")[2]
    assert json.loads(server.get(f"/api/runs/first-run?link={secret}")[1])["session_id"] == "first-run"
    for closed in ("/", "/runs", "/api/runs", "/ws", "/ws/first-run", "/runs/other", "/download/x", "/page.js"):
        assert server.get(f"{closed}?link={secret}")[0] == 403, closed
    assert server.get(there[:-1])[0] == 403
    assert server.asked(there, Host="evil.example")[0] == 403
    assert server.asked(there, Origin="http://evil.example")[0] == 403
    with pytest.MonkeyPatch.context() as patch:
        alone(patch, folder, folder)
        listed = json.loads(run_cli("link", "--list", "--json").out)
        assert [one["id"] for one in listed] == [made["id"]]
        assert secret not in run_cli("link", "--list").out
        assert "nothing answers" not in run_cli("link", "first-run").err
        with socket.create_server(("127.0.0.1", 0)) as closing:
            port = closing.getsockname()[1]
        assert f"nothing answers at port {port} now" in run_cli("link", "first-run", "--port", str(port)).err
        assert run_cli("link", "--revoke", made["id"]).code == 0
        assert run_cli("link", "--revoke", made["id"]).code == 2
        assert "made no call" in run_cli("link", "first-run", "--call", "look/1/1/1/1").err
    ended = server.get(there)
    assert ended[0] == 403
    assert "it has ended" in ended[1]
    assert "ask the person who sent it" in ended[1]
    assert server.get(f"{there[:-3]}abc")[:2] == ended[:2], "one that never was is answered alike"
    assert "open the address that 'workbench serve' printed" in server.get("/runs")[1]


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/api/runs?limit=%C2%B2", {}),
        ("/api/runs/first-run/events?after=%C2%B2", {}),
        ("/api/runs/first-run/events", {"Last-Event-ID": "9" * 400}),
        ("/?fontsize=%C2%B2", {}),
        ("/api/runs/%00", {}),
        ("/runs/..%2F..%2Fetc%2Fpasswd", {}),
        ("/?run=%1B%5D0%3Bx", {}),
        ("/runs/" + "a" * 3000, {}),
        ("/ws?width=%C2%B2&height=-1", {}),
    ],
)
def test_a_strange_request_is_answered_without_a_traceback(server: Server, path: str, headers: dict[str, str]) -> None:
    status, body, _ = server.get(path, {"Authorization": f"Bearer {server.token}", **headers})
    assert status in (200, 400, 403, 404), status
    assert "Traceback" not in body


def test_only_this_machine_is_served(cli: Cli) -> None:
    refused = cli("serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 2
    assert "'0.0.0.0' is not served" in refused.err
    assert "ssh -L" in refused.err


def test_a_port_that_is_taken_is_named(server: Server, cli: Cli) -> None:
    port = server.url.rpartition(":")[2]
    refused = cli("serve", "--port", port)
    assert refused.code == 2
    assert f"port {port} cannot be used" in refused.err


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 0),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.proof),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_a_server_opens_to_a_chosen_token_says_nothing_of_noise_and_a_signal_ends_it_and_its_apps(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    (tmp_path / "served.yaml").write_text(CASCADE)
    with served(tmp_path, token="of-base64/+and=more&%#") as it:
        status, _, headers = it.get("/" + it.printed)
        assert status == 303
        assert it.get("/", {"Cookie": headers["Set-Cookie"].partition(";")[0]})[0] == 200
        for sent in NO_HTTP:
            with socket.create_connection(("127.0.0.1", int(it.url.rpartition(":")[2])), 20) as connection:
                connection.sendall(sent)
                assert b" 400 " in connection.recv(4096)
        if number is not signal.SIGTERM:  # Which is handled as SIGINT is; an app takes a second to start.
            page = _open_page(it)
            _press(page, "n")
            _read(page, b"PAUSED")
        apps = it.children()
        assert len(apps) == (number is not signal.SIGTERM)
        it.process.send_signal(number)
        _, said = it.process.communicate(timeout=PATIENCE)
        assert it.process.returncode == code
        if number is signal.SIGKILL:  # Nobody is left to end them, so they see to it themselves.
            until(lambda: not any(map(is_alive, apps)), "the end of the apps")
        assert not any(map(is_alive, apps))
        assert said.splitlines() == [
            "Open this address in a browser of this machine. Ctrl+C ends the server and its apps."
        ]
    store = Project.at(tmp_path).store
    ended = [store.state(run_id) for run_id in store.run_ids()]
    assert [(run.status, run.reason) for run in ended] == [("stopped", "the server was ended")] * len(apps)


def test_a_run_whose_page_is_closed_says_so_and_not_that_a_person_stopped_it(server: Server, folder: Path) -> None:
    store = Project.at(folder).store
    before = set(store.run_ids())
    page = _open_page(server)
    _press(page, "n")
    _read(page, b"PAUSED")
    apps = server.children()
    page.close()
    until(lambda: not any(map(is_alive, apps)), "the end of the app of a closed page")
    (run_id,) = set(store.run_ids()) - before
    ended = store.state(run_id)
    assert (ended.status, ended.reason) == ("stopped", "the browser page was closed")
    shutil.rmtree(store.folder(run_id))


def test_a_page_asks_for_trust_as_a_terminal_does_and_leaves_no_process(server: Server, folder: Path) -> None:
    mark = folder / "mark"
    (folder / "tools").mkdir()
    (folder / "tools" / "evil.py").write_text(f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n")
    page = _open_page(server)
    _press(page, "r")
    _read(page, b"Trust this folder?")
    _press(page, "w")
    _read(page, b"success")
    assert not mark.exists()
    apps = server.children()
    assert len(apps) == 1
    page.close()
    until(lambda: not any(map(is_alive, apps)), "the end of the app of a closed page")


def _press(page: http.client.HTTPConnection, key: str) -> None:
    """Send a key as the page does: a masked frame of text; a mask of zeros changes nothing."""
    text = json.dumps(["stdin", key]).encode()
    assert page.sock is not None
    page.sock.sendall(bytes((0x81, 0x80 | len(text), 0, 0, 0, 0)) + text)


def _read(page: http.client.HTTPConnection, awaited: bytes) -> bytes:
    """What the app drew until it drew this."""
    seen, give_up = b"", time.monotonic() + PATIENCE
    assert page.sock is not None
    while awaited not in seen:
        assert time.monotonic() < give_up, seen[-400:]
        part = page.sock.recv(65536)
        assert part, seen[-400:]
        seen += part
    return seen


def _open_page(server: Server) -> http.client.HTTPConnection:
    """A web socket as a page opens it; returns when the app draws."""
    host = server.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=PATIENCE)
    headers = {
        "Cookie": server.cookie(),
        "Origin": server.url,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    connection.request("GET", "/ws?width=100&height=30", headers=headers)
    assert b"101" in _read(connection, b"lighthouse")[:20]
    return connection


def test_a_run_that_waits_for_a_person_says_so_in_the_words_of_the_command_line(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    store, run_id = Store(folder / ".workbench"), "01890000-0000-7000-8000-00000000wait"
    w, place = Writer(run_id), Place("", "draft", 1)
    with store.create(run_id) as journal:
        for event in (
            w.event("run_started", session_id="asked"),
            w.event("phase_started", place, kind="llm"),
            w.event("human_asked", place, index=1, question="How <good>?"),
        ):
            journal.append(event)
        told = next(run for run in server.json("/api/runs") if run["run_id"] == run_id)
        listed = next(run for run in run_cli("runs", "--json").json if run["run_id"] == run_id)
        listed.pop("found"), listed.pop("found_calls")
        assert told == listed
        assert (told["waiting"], told["cost"], told["tags"]) == (True, 0.0, [])
        assert '<td class="waiting">waiting' in server.asked("/runs")[1]
        page = server.asked(f"/runs/{run_id}")[1]
    assert page.count('<span class="waiting">waiting') == 3  # The run, its phase in the tree, and that phase below.
    assert "draft waits for the answer of a person: How &lt;good&gt;?" in page
    shutil.rmtree(store.folder(run_id))
