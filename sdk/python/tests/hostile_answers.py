"""Answers of a service that was taken over, for the tests of all that reads answers."""

import gzip

from aiohttp import web

BAD_URLS = [
    "http://h:99999/x",
    "http://h:0",
    "http://h:eighty",
    "http://[x/",
    "http://[::1%25eth0]:80",
    "http://",
    "http://:8888",
    "http://a b:80",
    "http://user:word@h:80",
    "http://h\x00:80",
    "http://" + "h" * 64,
    "http://" + "h." * 150,
    "http://h..h:80",
    "http://[1:2]:80",
    "http://h:80\n",
    "http://hé:80",
    "ftp://h:80",
    "//h:80",
    "h:80",
    "javascript:alert(1)",
    7,
    {"a": 1},
]


class Endless:
    """An answer that goes on until the client hangs up, or for 64 MiB. `sent` counts the bytes of all answers."""

    def __init__(self, status=200):
        self.status, self.sent = status, 0

    async def send(self, request):
        response = web.StreamResponse(status=self.status)
        await response.prepare(request)
        for _ in range(1024):
            try:
                await response.write(b" " * 65536)
            except ConnectionError:
                break
            self.sent += 65536
        return response


def text(body):
    return lambda: web.Response(text=body, content_type="application/json")


def compressed(body, encoding="gzip"):
    return lambda: web.Response(body=gzip.compress(body), headers={"Content-Encoding": encoding})


RUNNING = b'{"username": "ada", "server": "", "status": "running", "name": "ada"}'
UNUSABLE = {
    "nested": text("[" * 200_000),
    "nested objects": text('{"status":' * 100_000),
    "a long number": text('{"status": ' + "9" * 5000 + "}"),
    "half of a surrogate pair": text('{"username": "ada", "status": "running", "message": "\\ud800"}'),
    "not UTF-8": lambda: web.Response(body=b'{"status": "\xff"}'),
    "UTF-16": lambda: web.Response(body=RUNNING.decode().encode("utf-16")),
    "compressed": compressed(RUNNING),
    "not compressed, but said to be": lambda: web.Response(body=RUNNING, headers={"Content-Encoding": "br"}),
    "endless": Endless(),
    "an endless refusal": Endless(status=404),
    "a nested refusal": lambda: web.Response(status=403, text='{"detail":' + "[" * 200_000),
    "a header that is none": lambda: web.Response(status=418, headers={"Retry-After": "9" * 5000}),
    "another protocol": lambda: web.Response(status=101),
}
