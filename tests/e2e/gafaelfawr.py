"""A stub of Gafaelfawr: what NGINX and protected services ask it, as its documentation says (gafaelfawr.lsst.io, pages
"How Gafaelfawr-protected ingresses work", "Configuring ingress with GafaelfawrIngress", "Configuring an ingress manually"
and "Cross-origin requests"), and its source where these are silent. What of it concerns a service behind it:

- NGINX asks `/ingress/auth` for each request (`auth_request`), with the headers of the request. The settings of the
  ingress are in the query: `scope` (repeated) and `satisfy=any`, `notebook=true`, `minimum_lifetime`, `service`.
- Its own cookie `gafaelfawr` is looked at first, then `Authorization`: `bearer` with a token, or `basic` with a token as
  user or password. Another type of `Authorization`, or a bearer token that is none of Gafaelfawr's, is an error if there is no
  cookie.
- Without a valid token the answer is 401 with a challenge, or 403 if the request has `X-Requested-With: XMLHttpRequest`;
  without a required scope it is 403. NGINX gives both to the client as they are, with a page of its own as the body. Any
  other error is given as 403 with the true status in `X-Error-Status`.
- With `notebook=true` the answer has a token in `X-Auth-Request-Token`: a child of the token in the request, with the same
  scopes, which expires with it, and at the latest after the lifetime of tokens. A token that still has half of its life, or
  the required minimum, is given again. If a token is revoked, so are its children.
- `minimum_lifetime` is at least 300 s, which is also the minimum for delegated tokens if it is not given. If the token in the
  request is not valid that long, the answer is 401. Tokens of services do not expire.
- The answer has `X-Auth-Request-User` and `-Email`, and what is left of `Authorization` and `Cookie` without Gafaelfawr's own
  tokens and cookie. NGINX replaces all of these in the request, and removes those that
  are not in the answer. So a service sees neither a header of these that the client has made up, nor the client's own token.
- `/ingress/anonymous` is for ingresses without authentication: only `Authorization` and `Cookie` are in the answer, filtered as
  above. NGINX removes the others there, too, where the ingress is made from a GafaelfawrIngress.
- It does not protect against requests that another site's page makes a browser send; that is left to the service.
- `/auth/api/v1/user-info` and `/auth/api/v1/token-info` tell who owns the bearer token, and what it may do.
"""

import base64
import binascii
import json
import secrets
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

COOKIE = "gafaelfawr"
MINIMUM_LIFETIME = 300
TOKEN_LIFETIME = 30 * 24 * 3600


@dataclass(eq=False)
class Token:
    """A token that Gafaelfawr has issued. `expires` is None for tokens of services."""

    text: str
    username: str
    kind: str
    scopes: tuple[str, ...]
    created: float
    expires: float | None
    parent: "Token | None" = None
    revoked: bool = False

    def is_valid(self) -> bool:
        alive = not self.revoked and (self.expires is None or self.expires > time.time())
        return alive and (self.parent is None or not self.parent.is_revoked())

    def is_revoked(self) -> bool:
        return self.revoked or (self.parent is not None and self.parent.is_revoked())


class Refusal(Exception):
    """An answer of `/ingress/auth` other than 200."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


@dataclass
class Gafaelfawr:
    """What the stub knows, and what it was asked."""

    users: dict[str, dict] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    asked: Counter = field(default_factory=Counter)
    url: str = ""
    _children: dict[Token, Token] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def running(self):
        """The time in which it answers."""
        handler = type("Handler", (_Handler,), {"gafaelfawr": self})
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.url = f"http://127.0.0.1:{server.server_port}"
            yield self
            server.shutdown()

    def log_in(self, username: str, *scopes: str, lifetime: float = TOKEN_LIFETIME, **details) -> Token:
        """Make a user known. Returns the token in the cookie of the user's browser."""
        self.users[username] = {"username": username, "groups": [], **details}
        return self._issue(username, "session", scopes, time.time() + lifetime)

    def service_token(self, username: str, *scopes: str) -> Token:
        """The token of a service, as a GafaelfawrServiceToken makes it."""
        self.users.setdefault(username, {"username": username})
        return self._issue(username, "service", scopes, None)

    def notebook_token(self, parent: Token, minimum: float) -> Token:
        """The token for notebooks that belongs to another token."""
        with self._lock:
            child = self._children.get(parent)
            if child is None or not child.is_valid() or child.expires - time.time() < minimum:
                expires = min(parent.expires or float("inf"), time.time() + TOKEN_LIFETIME)
                child = self._issue(parent.username, "notebook", parent.scopes, expires, parent)
                self._children[parent] = child
            return child

    def shorten(self, token: Token, seconds: float) -> None:
        """Let a token, and those from which it comes, live no longer than this."""
        while token:
            token.expires = min(token.expires, time.time() + seconds)
            token = token.parent

    def _issue(self, username, kind, scopes, expires, parent=None) -> Token:
        text = f"gt-{secrets.token_urlsafe(16)}.{secrets.token_urlsafe(16)}"
        self.tokens[text] = token = Token(text, username, kind, tuple(scopes), time.time(), expires, parent)
        return token

    def authenticate(self, headers) -> Token:
        """The token of a request. Raises `Refusal`."""
        requested_with = headers.get("X-Requested-With", "").lower()
        unauthenticated = 403 if requested_with == "xmlhttprequest" else 401
        text = _cookies(headers).get(COOKIE) or _token_in(headers.get("Authorization"))
        if not text:
            raise Refusal(unauthenticated, "Authentication required")
        token = self.tokens.get(text)
        if not token or not token.is_valid():
            raise Refusal(unauthenticated, "Token is not valid")
        return token

    def authorize(self, query: dict[str, list[str]], headers) -> list[tuple[str, str]]:
        """The headers of a good answer of `/ingress/auth`. Raises `Refusal`."""
        notebook = query.get("notebook") == ["true"]
        minimum = int(query.get("minimum_lifetime", ["0"])[0]) or (MINIMUM_LIFETIME if notebook else 0)
        if not query.get("scope") or 0 < minimum < MINIMUM_LIFETIME or minimum > TOKEN_LIFETIME - MINIMUM_LIFETIME:
            raise Refusal(422, f"The ingress has wrong settings: {query}")
        token = self.authenticate(headers)
        if token.expires is not None and token.expires - time.time() < minimum:
            raise Refusal(401, "Remaining token lifetime too short")
        satisfied = any if query.get("satisfy") == ["any"] else all
        if not satisfied(scope in token.scopes for scope in query["scope"]):
            raise Refusal(403, "Token missing required scope")
        answer = [("X-Auth-Request-User", token.username)]
        if email := self.users[token.username].get("email"):
            answer.append(("X-Auth-Request-Email", email))
        if notebook:
            answer.append(("X-Auth-Request-Token", self.notebook_token(token, minimum).text))
        return answer + filtered(headers)

    def user_info(self, token: Token) -> dict:
        return self.users[token.username]

    def token_info(self, token: Token) -> dict:
        about = {"token": token.text[3:25], "username": token.username, "token_type": token.kind}
        about |= {"scopes": sorted(token.scopes), "created": int(token.created)}
        return about | ({"expires": int(token.expires)} if token.expires else {})


def filtered(headers) -> list[tuple[str, str]]:
    """`Authorization` and `Cookie` without what is Gafaelfawr's."""
    kept = [("Authorization", value) for value in headers.get_all("Authorization", []) if not _has_token(value)]
    for value in headers.get_all("Cookie", []):
        if cookies := [each for each in value.split("; ") if each.partition("=")[0] != COOKIE]:
            kept.append(("Cookie", "; ".join(cookies)))
    return kept


def _cookies(headers) -> dict[str, str]:
    return dict(each.partition("=")[::2] for each in headers.get("Cookie", "").split("; "))


def _is_token(text: str) -> bool:
    return text.startswith("gt-") and text.count(".") == 1


def _basic(blob: str) -> list[str]:
    try:
        return base64.b64decode(blob, validate=True).decode().strip().split(":")
    except (binascii.Error, UnicodeDecodeError):
        return []


def _has_token(authorization: str) -> bool:
    kind, _, blob = authorization.partition(" ")
    candidates = {"bearer": [blob], "basic": _basic(blob)}.get(kind.lower(), [])
    return any(map(_is_token, candidates))


def _token_in(authorization: str | None) -> str:
    if not authorization:
        return ""
    kind, _, blob = authorization.partition(" ")
    if kind.lower() == "bearer":
        if not _is_token(blob):
            raise Refusal(401, "Token does not start with gt-")
        return blob
    if kind.lower() != "basic":
        raise Refusal(400, f"Unknown Authorization type {kind}")
    return next(filter(_is_token, _basic(blob)), "")


class _Handler(BaseHTTPRequestHandler):
    gafaelfawr: Gafaelfawr
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        # NGINX closes connections whose client has gone.
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.gafaelfawr.asked[url.path] += 1
        match url.path:
            case "/ingress/auth":
                self._auth(parse_qs(url.query))
            case "/ingress/anonymous":
                self._answer(200, filtered(self.headers))
            case "/auth/api/v1/user-info":
                self._about(self.gafaelfawr.user_info)
            case "/auth/api/v1/token-info":
                self._about(self.gafaelfawr.token_info)
            case _:
                self._answer(404, [])

    def _auth(self, query) -> None:
        try:
            self._answer(200, self.gafaelfawr.authorize(query, self.headers))
        except Refusal as refusal:
            if refusal.status == 401:
                self._answer(401, [("WWW-Authenticate", f'Bearer realm="example", error_description="{refusal}"')])
            else:
                self._answer(403, [("X-Error-Status", str(refusal.status))])

    def _about(self, describe) -> None:
        try:
            self._answer(200, [], describe(self.gafaelfawr.authenticate(self.headers)))
        except Refusal as refusal:
            self._answer(refusal.status, [], {"detail": [{"msg": str(refusal), "type": "invalid_token"}]})

    def _answer(self, status: int, headers, body=None) -> None:
        content = json.dumps(body or {"status": "ok"}).encode()
        self.send_response(status)
        for name, value in [*headers, ("Content-Type", "application/json"), ("Content-Length", str(len(content)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_) -> None:
        """Nothing: what is asked is counted."""
