import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wasmspawner.sse import Event, EventStreamParser, StreamTooLong

TABLE = [
    ("nothing", b"", []),
    ("plain", b"data: hello\n\n", [Event("message", "hello", "")]),
    ("typed", b"event: info\ndata: Pulling\n\n", [Event("info", "Pulling", "")]),
    ("id", b"id: j-1\nevent: info\ndata: a\n\n", [Event("info", "a", "j-1")]),
    ("id lasts", b"id: j-1\ndata: a\n\ndata: b\n\n", [Event("message", "a", "j-1"), Event("message", "b", "j-1")]),
    ("id with NUL is ignored", b"id: j\x00\ndata: a\n\n", [Event("message", "a", "")]),
    (
        "url",
        b"event: complete\nurl: http://x\ndata: a\n\ndata: b\n\n",
        [Event("complete", "a", "", "http://x"), Event("message", "b", "")],
    ),
    ("no space after the colon", b"data:x\n\n", [Event("message", "x", "")]),
    ("one space is taken, no more", b"data:  x\n\n", [Event("message", " x", "")]),
    ("lines of data", b"data: a\ndata: b\n\n", [Event("message", "a\nb", "")]),
    ("field without colon", b"data\n\n", [Event("message", "", "")]),
    ("no data, no event", b"event: info\n\ndata: a\n\n", [Event("message", "a", "")]),
    ("comment", b": keepalive\n\ndata: a\n\n", [Event("message", "a", "")]),
    ("comment inside an event", b"event: info\n: here\ndata: a\n\n", [Event("info", "a", "")]),
    ("unknown field", b"severity: high\ndata: a\n\n", [Event("message", "a", "")]),
    ("CRLF", b"event: info\r\ndata: a\r\n\r\n", [Event("info", "a", "")]),
    ("CR", b"event: info\rdata: a\r\r", [Event("info", "a", "")]),
    ("mixed ends", b"event: info\rdata: a\r\n\n", [Event("info", "a", "")]),
    ("byte order mark", b"\xef\xbb\xbfdata: a\n\n", [Event("message", "a", "")]),
    ("unfinished", b"data: a\n", []),
    ("not UTF-8", b"data: \xff\n\n", [Event("message", "\ufffd", "")]),
    ("other line separators are text", "data: a\u2028b\x0bc\n\n".encode(), [Event("message", "a\u2028b\x0bc", "")]),
]


@pytest.mark.parametrize(("raw", "events"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_stream_in_one_piece(raw, events):
    assert EventStreamParser().feed(raw) == events


@pytest.mark.parametrize(("raw", "events"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_stream_byte_by_byte(raw, events):
    parser = EventStreamParser()
    assert [event for byte in raw for event in parser.feed(bytes([byte]))] == events


# Without line separators, which have a meaning in the format.
texts = st.text(st.characters(exclude_characters="\r\n\0", codec="utf-8"))
events = st.builds(
    Event,
    st.sampled_from(["info", "error", "progress", "stage"]),
    texts,
    st.from_regex(r"[a-z0-9]{1,8}-\d{1,3}", fullmatch=True),
    texts,
)


@settings(deadline=None)
@given(st.lists(events, max_size=8), st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(1, 12)), st.booleans())
def test_any_split_gives_what_was_sent(sent, newline, cuts, keepalives):
    raw = "".join(
        (f": keepalive{newline}{newline}" if keepalives else "")
        + f"id: {e.id}{newline}event: {e.type}{newline}url: {e.url}{newline}data: {e.data}{newline}{newline}"
        for e in sent
    ).encode()
    parser, received = EventStreamParser(), []
    for cut in cuts:
        received += parser.feed(raw[:cut])
        raw = raw[cut:]
    assert received + parser.feed(raw) == sent
    assert parser.last_event_id == (sent[-1].id if sent else "")


@settings(deadline=None)
@given(st.lists(st.binary(max_size=64)))
def test_any_bytes_give_the_same_events_in_any_pieces(chunks):
    parser = EventStreamParser()
    split = [event for chunk in chunks for event in parser.feed(chunk)]
    assert EventStreamParser().feed(b"".join(chunks)) == split


@pytest.mark.parametrize(("raw", "retry"), [(b"retry: 1500\n", 1.5), (b"retry: soon\n", None), (b"retry: -1\n", None)])
def test_retry(raw, retry):
    parser = EventStreamParser()
    parser.feed(raw)
    assert parser.retry == retry


@pytest.mark.parametrize("chunk", [b"x" * 100, b"data: " + b"x" * 40 + b"\n"])
def test_an_endless_event_is_refused(chunk):
    parser = EventStreamParser(limit=1000)

    def feed_for_ever():
        for _ in range(100):
            parser.feed(chunk)

    with pytest.raises(StreamTooLong):
        feed_for_ever()


def test_a_broken_connection_loses_only_the_incomplete_event():
    parser = EventStreamParser()
    parser.feed(b"id: j-1\ndata: a\n\nid: j-2\ndata: half")
    parser.reconnected()
    assert parser.feed(b"id: j-2\ndata: whole\n\n") == [Event("message", "whole", "j-2")]
