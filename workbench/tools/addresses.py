"""The hosts that tools may reach: one rule for pages, requests and servers, applied to each address before connecting.

The public network is allowed. Other addresses are allowed if a person has named them: in the setting ``allow_hosts``,
or, for the one host that a tool's own file names, by trusting that file.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from msgspec import Struct, field

Address = IPv4Address | IPv6Address

_METADATA: tuple[IPv4Network | IPv6Network, ...] = (
    *(IPv4Network(net) for net in ("169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32")),
    *(IPv6Network(net) for net in ("fe80::/10", "fd00:ec2::254/128")),
)
"""Where clouds hand out the keys of the machine: no page and no request of a cascade has anything to look for there."""
_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal"})
_NAT64 = IPv6Network("64:ff9b::/96")
_HANDED_OUT = IPv6Network("2000::/3")
"""All of IPv6 that is of the public network; ``is_global`` also holds for some of what networks once used inside."""
_NOT_REACHED = (IPv4Network("192.0.0.0/24"), IPv4Network("192.88.99.0/24"))
"""Given out to protocols, and a relay that is withdrawn (RFC 6890, 7526): ``is_global`` of older Pythons holds for
some of them."""
_DOCUMENTATION = IPv6Network("3fff::/20")
"""For examples only (RFC 9637); ``is_global`` of older Pythons holds for it."""


class NotPublic(ValueError):
    """An address that may not be reached; the message says which, and how it could be."""


class NetworkReach(Struct, frozen=True):
    """The rule, with what a person has allowed beside the public network.

    ``hosts`` are names (``localhost``), names with a port (``localhost:8000``), all names below one
    (``*.intern.example``), addresses, and networks (``10.0.0.0/8``). Raises ValueError for what is none of these.
    """

    hosts: tuple[str, ...] = ()
    _networks: list[IPv4Network | IPv6Network] = field(default_factory=list)
    _names: list[tuple[str, int | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for text in self.hosts:
            if "/" in text:
                self._networks.append(ip_network(text, strict=False))
            else:
                self._names.append(_name_and_port(text))

    async def addresses(self, host: str, port: int, *, named: bool = False) -> list[str]:
        """The addresses to connect to, in order: a name is looked up once, so that it cannot mean another one
        afterwards. ``named``: a person has named this very host in a file of a trusted folder.

        Raises NotPublic where one of them may not be reached, OSError where there is no such name.
        """
        import asyncio  # Every command knows the setting, and few ask for addresses: 30 ms.

        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        numbers = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if self._names_it(host, port, exactly=True):
            return numbers
        for number in numbers:
            address = meant(number)
            if address is None or _in_metadata(address) or is_metadata(host):
                raise NotPublic(f"'{host}' is {address}, where a cloud hands out the keys of the machine")
            if not (named or _is_public(address) or self._names_it(host, port) or self._holds(address)):
                raise NotPublic(
                    f"'{host}' is {address}, which is not in the public network; the setting 'allow_hosts' can open it"
                )
        return numbers

    def _names_it(self, host: str, port: int, *, exactly: bool = False) -> bool:
        plain = host.strip("[]").rstrip(".").lower()
        return any(
            (open_port is None or open_port == port)
            and (name == plain or (not exactly and name.startswith("*.") and plain.endswith(name[1:])))
            for name, open_port in self._names
        )

    def _holds(self, address: Address) -> bool:
        return any(address in network for network in self._networks if network.version == address.version)


def _name_and_port(text: str) -> tuple[str, int | None]:
    """``name``, ``name:port``, ``[address]:port``. Raises ValueError."""
    plain = text.strip().lower()
    name, colon, port = plain.rpartition(":")
    if not colon or (":" in name and not name.endswith("]")):
        name, port = plain, ""
    name = name.strip("[]").rstrip(".")
    if not name or any(char.isspace() or char in "/@?#" for char in name) or "*" in name.removeprefix("*."):
        known = "a name, a name with a port, '*.' and a name, an address or a network"
        raise ValueError(f"'{text}' is not a host: {known}")
    if port and not (port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"'{text}' has no port between 1 and 65535")
    return name, int(port) if port else None


def bad_host(texts: Sequence[str]) -> str:
    """Returns why a list of hosts cannot be used; empty if it can."""
    try:
        NetworkReach(tuple(texts))
    except ValueError as fault:
        return str(fault)
    return ""


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and (address not in _HANDED_OUT or address in _DOCUMENTATION):
        return False
    if any(address in network for network in _NOT_REACHED if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast and not _in_metadata(address)


def is_metadata(host: str) -> bool:
    """Returns whether a host, as it is written in a URL, is the metadata service of a cloud."""
    address = meant(host)
    if address is None:
        return host.rstrip(".").lower() in _METADATA_NAMES
    return _in_metadata(address)


def _in_metadata(address: Address) -> bool:
    return any(address in network for network in _METADATA if network.version == address.version)


def meant(host: str) -> Address | None:
    """The address that a literal means, through mappings of the one family into the other; None for a name.

    Browsers also read ``2852039166``, ``0xa9.254.1`` and ``0251.254.1`` as addresses.
    """
    try:
        address = ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        try:
            return IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address.sixtofour is not None:
            return address.sixtofour
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address
