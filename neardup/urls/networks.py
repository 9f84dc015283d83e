"""Which addresses are none of the public internet."""

from __future__ import annotations

import ipaddress
import re
import socket

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an IPv4 address."""

_OWN_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
"""RFC 8215: what it stands for is decided by the network one is in. Python before 3.11.10 takes it for
global.
"""

# What inet_aton reads: one to four numbers, each decimal, octal or hexadecimal.
_IPV4_OF_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}", re.IGNORECASE)


def literal_address(host: str) -> str | None:
    """The IP address that a host is, in every form that systems read as one; None if it is a name.

    >>> hosts = ("127.1", "0x7f.1", "2130706433", "0177.0.0.1.", "[::1]", "a.example")
    >>> [literal_address(host) for host in hosts]
    ['127.0.0.1', '127.0.0.1', '127.0.0.1', '127.0.0.1', '::1', None]
    """
    bare = host.strip("[]").rstrip(".")
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        pass
    if _IPV4_OF_NUMBERS.fullmatch(bare) is None:
        return None
    try:
        return socket.inet_ntoa(socket.inet_aton(bare))
    except OSError:
        return None


def is_private(address: str) -> bool:
    """Whether an IP address is none of the public internet: private, loopback, link-local, multicast,
    reserved, unspecified.

    An IPv6 address that stands for an IPv4 address (mapped, 6to4, NAT64) is judged by that one. ValueError if
    it is no address.
    """
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if inner is None and found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return is_private(str(inner))
        if found.is_site_local or found in _OWN_NAT64:
            return True
    return not found.is_global or found.is_multicast or found.is_reserved
