"""Addresses in URLs of the service."""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address

_LABEL = "[a-z0-9_-]{1,63}"
_URL = re.compile(
    rf"(?P<scheme>https?)://(\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>{_LABEL}(\.{_LABEL})*\.?))"
    r"(:(?P<port>[0-9]{1,5}))?([/?#].*)?",
    re.IGNORECASE,
)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class WebAddress:
    """The scheme, host and port of a URL."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of_url(cls, url: str) -> "WebAddress":
        """The address in a URL. Raises `ValueError` if it is no http(s) URL with a host and a possible port."""
        match = _URL.fullmatch(url)
        if match is None:
            raise ValueError("no http(s) URL with the name or address of a host")
        scheme, ipv6, name, port = match.group("scheme", "ipv6", "name", "port")
        scheme = scheme.lower()
        address = cls(scheme, str(IPv6Address(ipv6)) if ipv6 else name.lower(), int(port or _DEFAULT_PORTS[scheme]))
        if len(address.host) > 253 or not 0 < address.port < 65536:
            raise ValueError("a URL with an impossible host or port")
        return address

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"
