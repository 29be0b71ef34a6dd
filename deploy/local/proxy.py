"""JupyterHub's proxy for one machine: PyPI's `configurable-http-proxy` (no Node needed) with answers passed on as they come.

Version 0.4.0 reads an answer to its end before it sends the first byte, so a spawn's progress would show when it is
over; it allows ten requests at a time for all users; it sends `/user/ada@example.org/` on as `/user/ada%40...`, which
the lab does not know; and it does not pass on a web socket's subprotocol. Here the request's own path is used, and
aiohttp carries it.
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

# RFC 9110, section 7.6.1: these concern one connection only.
_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding")
)


class StreamingProxyHandler(ProxyHandler):
    """One request, from the browser to the Hub or a lab."""

    _upstream: aiohttp.ClientSession | None = None
    _forwarding: asyncio.Task | None = None

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
        """What the lab chose: JupyterLab speaks to kernels in the subprotocol it is told."""
        return self.ws_client.selected_subprotocol if self.ws_client else None

    def on_message(self, message):
        """From the browser to the lab; what came as bytes stays bytes."""
        if self.ws_client:
            self.proxy.update_last_activity(self.target["prefix"])
            with suppress(WebSocketClosedError):
                self.ws_client.write_message(message, binary=isinstance(message, bytes))

    async def call_proxy(self, path=None):
        """Send the request on and the answer back, piece by piece."""
        url = await self.get_target_url(path)
        if url is None:
            return
        self._forwarding = asyncio.ensure_future(self._forward(url))
        try:
            await self._forwarding
        except (asyncio.CancelledError, StreamClosedError):
            pass  # the browser left
        except (aiohttp.ClientError, OSError) as error:
            if self._headers_written:
                # The answer broke off; let the browser see that it did.
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
            self._headers.clear()  # tornado's own Server and Date
            self.set_status(answer.status, answer.reason)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    self.add_header(name, value)
            if "Content-Length" not in answer.headers:
                await self.flush()  # a stream: its reader waits for the headers
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
        """The browser left: leave the lab's answer too."""
        super().on_connection_close()
        if self._forwarding is not None:
            self._forwarding.cancel()


configproxy.ProxyHandler = StreamingProxyHandler

if __name__ == "__main__":
    cli.main()
