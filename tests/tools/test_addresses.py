"""A host that a model chooses is of the public network; one that a person named in a file may be any."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from workbench.tools.addresses import NetworkReach, NotPublic, is_metadata, meant
from workbench.tools.browser.session import allowed
from workbench.tools.declared.definition import HttpTool
from workbench.tools.declared.tools import RequestRefused, request
from workbench.workspace.settings import SettingsError, load_settings

INSIDE = [
    *("127.0.0.1", "localhost", "0.0.0.0", "10.1.2.3", "192.168.0.1", "172.16.0.1", "100.64.0.1", "169.254.169.254"),
    *("::1", "fd00::1", "fe80::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "224.0.0.1"),
    *("2130706433", "0x7f.1", "0177.0.0.1", "127.1", "fec0::1", "::127.0.0.1", "168.63.129.16", "100.100.100.200"),
    *("3fff::1", "2001:db8::1", "192.0.0.8", "192.88.99.1"),
]


@pytest.mark.parametrize("host", INSIDE)
def test_no_way_of_writing_an_inner_address_is_public(host: str) -> None:
    with pytest.raises(NotPublic, match=r"not in the public network|keys of the machine"):
        asyncio.run(NetworkReach().addresses(host, 80))


@pytest.mark.parametrize("host", ["93.184.216.34", "2606:2800:220:1::1"])
def test_a_public_address_is_the_one_to_connect_to(host: str) -> None:
    assert asyncio.run(NetworkReach().addresses(host, 80)) == [host]


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "169.254.169.254", "ada:pw@127.0.0.1", "2130706433"])
def test_a_declared_request_whose_host_is_an_input_stays_outside(host: str) -> None:
    tool = HttpTool(tool_id="get", type="http", url="{{ url }}")
    with pytest.raises(RequestRefused, match="a tool's file may name such a host, an input may not"):
        asyncio.run(request(tool, lambda text: text.replace("{{ url }}", f"http://{host}:1/")))


METADATA = [
    *("169.254.169.254", "::ffff:169.254.169.254", "2852039166", "fd00:ec2::254", "100.100.100.200"),
]


@pytest.mark.parametrize("host", METADATA)
def test_what_hands_out_the_keys_of_a_machine_opens_by_its_very_name_alone(host: str) -> None:
    for reach, named in ((NetworkReach(), True), (NetworkReach(("0.0.0.0/0", "::/0", "*.internal")), False)):
        with pytest.raises(NotPublic, match="keys of the machine"):
            asyncio.run(reach.addresses(host, 80, named=named))
    assert asyncio.run(NetworkReach((host,)).addresses(host, 80))


@pytest.mark.parametrize(
    ("allowed_host", "host", "port", "opens"),
    [
        ("localhost", "localhost", 80, True),
        ("LOCALHOST.", "localhost", 80, True),
        ("127.0.0.1:8000", "127.0.0.1", 8000, True),
        ("127.0.0.1:8000", "127.0.0.1", 8001, False),
        ("[::1]:8000", "::1", 8000, True),
        ("::1", "::1", 8000, True),
        ("127.0.0.0/8", "localhost", 80, True),
        ("10.0.0.0/8", "127.0.0.1", 80, False),
        ("*.localhost", "localhost", 80, False),
        ("127.0.0.2", "127.0.0.1", 80, False),
    ],
)
def test_a_person_opens_hosts_by_name_port_or_network(allowed_host: str, host: str, port: int, opens: bool) -> None:
    reach = NetworkReach((allowed_host,))
    if opens:
        assert asyncio.run(reach.addresses(host, port))
    else:
        with pytest.raises(NotPublic, match="the setting 'allow_hosts' can open it"):
            asyncio.run(reach.addresses(host, port))


@pytest.mark.parametrize("text", ["", "http://x", "a b", "x:99999", "10.0.0.0/99", "a*b", "user@host"])
def test_what_is_no_host_is_refused_where_it_is_set(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match="allow_hosts"):
        load_settings(tmp_path, {}, flags={"allow_hosts": [text]})


def test_names_are_no_addresses() -> None:
    assert meant("example.org") is None
    assert not is_metadata("example.org")
    assert allowed("localhost:3000/x") == "https://localhost:3000/x"
