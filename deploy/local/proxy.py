"""JupyterHub's proxy for one machine: PyPI's `configurable-http-proxy` (which needs no Node), with streamed answers.

Version 0.4.0 of that package reads the whole answer before it sends the first byte, so that the progress of a spawn
would only appear at its end. It allows ten requests at a time for all users, forwards `/user/ada@example.org/` as
`/user/ada%40...`, which the lab does not know, and does not forward the subprotocol of a web socket. This handler uses
the request's own path, and aiohttp as its client.
"""

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

import aiohttp
from configurable_http_proxy import cli, configproxy
from configurable_http_proxy.handlers import ProxyHandler
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError
from yarl import URL

# RFC 9110, section 7.6.1: these headers apply to one connection only.
_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding")
)

# The names of loopback. A page of another site may let its own name resolve to loopback (DNS rebinding); its requests
# carry that name.
_HOSTS = frozenset(("localhost", "127.0.0.1", "::1", "[::1]"))


class StreamingProxyHandler(ProxyHandler):
    """A request of the browser that is forwarded to the Hub or a lab."""

    _upstream: aiohttp.ClientSession | None = None
    _forwarding: asyncio.Task | None = None

    def prepare(self):
        """Refuse requests for other hosts than this machine."""
        if self.request.host_name not in _HOSTS:
            self.set_status(421)
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.finish(
                f"This JupyterHub is at http://localhost on its own machine, not at {self.request.host_name!r}.\n"
            )

    @classmethod
    def upstream(cls) -> aiohttp.ClientSession:
        """The proxy's connections to the Hub and the labs."""
        if cls._upstream is None:
            cls._upstream = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            )
        return cls._upstream

    async def get_target_url(self, path):
        """The upstream URL, with the path exactly as it was requested."""
        url = await super().get_target_url(path)
        return url and urlsplit(url)._replace(path=self.request.path).geturl()

    def select_subprotocol(self, subprotocols):
        """Select the subprotocol that the lab chose; JupyterLab's messages to kernels depend on it."""
        return self.ws_client.selected_subprotocol if self.ws_client else None

    def on_message(self, message):
        """Forward a message from the browser to the lab; binary messages stay binary."""
        if self.ws_client:
            self.proxy.update_last_activity(self.target["prefix"])
            with suppress(WebSocketClosedError):
                self.ws_client.write_message(message, binary=isinstance(message, bytes))

    async def call_proxy(self, path=None):
        """Forward the request, and stream the answer back."""
        url = await self.get_target_url(path)
        if url is None:
            return
        self._forwarding = asyncio.ensure_future(self._forward(url))
        try:
            await self._forwarding
        except (asyncio.CancelledError, StreamClosedError):
            pass  # the browser closed the connection
        except (aiohttp.ClientError, OSError) as error:
            if self._headers_written:
                # The answer ended early; close the connection so that the browser notices.
                self.request.connection.stream.close()
            else:
                await self.handle_proxy_error(503, error)

    async def _forward(self, url):
        async with self.upstream().request(
            self.request.method,
            URL(url, encoded=True),
            headers=self._request_headers(),
            data=self.request.body or None,
            allow_redirects=False,
        ) as answer:
            self.clear()
            self._headers.clear()  # the headers Server and Date of tornado itself
            self.set_status(answer.status, answer.reason)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    self.add_header(name, value)
            if "Content-Length" not in answer.headers:
                await self.flush()  # in a stream the client waits for the headers
            async for piece in answer.content.iter_any():
                self.write(piece)
                await self.flush()
        await self.finish()

    def _request_headers(self):
        headers = [
            (name, value)
            for name, value in self.request.headers.get_all()
            if name.lower() not in _HOP_BY_HOP and name.lower() != "content-length"
        ]
        seen = {name.lower() for name, _ in headers}
        for name, value in (
            ("X-Forwarded-For", self.request.remote_ip),
            ("X-Forwarded-Proto", self.request.protocol),
            ("X-Forwarded-Host", self.request.host),
        ):
            if name.lower() not in seen:
                headers.append((name, value))
        return headers

    def on_connection_close(self):
        """Stop reading the lab's answer when the browser closes the connection."""
        super().on_connection_close()
        if self._forwarding is not None:
            self._forwarding.cancel()


configproxy.ProxyHandler = StreamingProxyHandler

if __name__ == "__main__":
    cli.main()
