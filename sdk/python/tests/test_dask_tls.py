"""An error of one TLS connection does not end another. Only some builds of Python confuse them."""

import socket
import ssl
import threading

import pytest

from wasmspawner import dask_tls
from wasmspawner.dask.certificate import Certificate


@pytest.fixture
def apart(monkeypatch):
    for name in dask_tls._OPERATIONS:
        monkeypatch.setattr(ssl.SSLSocket, name, getattr(ssl.SSLSocket, name))
    dask_tls.dask_setup(None)
    dask_tls.dask_setup(None)


def connection(pem):
    """Both ends of a connection, the server's first."""

    def wrapped(end, protocol, **options):
        context = ssl.SSLContext(protocol)
        context.check_hostname = False
        context.load_cert_chain(pem)
        context.load_verify_locations(pem)
        return context.wrap_socket(end, **options)

    ends, made = socket.socketpair(), []
    server = threading.Thread(target=lambda: made.append(wrapped(ends[0], ssl.PROTOCOL_TLS_SERVER, server_side=True)))
    server.start()
    client = wrapped(ends[1], ssl.PROTOCOL_TLS_CLIENT)
    server.join()
    return made[0], client


def send_until_refused(end):
    while True:  # the first ones may still be taken
        end.send(b"x")


def test_a_connection_outlives_the_broken_pipe_of_another(apart, tmp_path):
    pem = tmp_path / "pair.pem"
    certificate = Certificate.new()
    pem.write_text(certificate.certificate + certificate.key)
    dead, gone = connection(pem)
    alive, peer = connection(pem)
    gone.close()
    alive.setblocking(False)
    with dead, alive, peer:
        for _ in range(3):
            with pytest.raises(OSError, match=r"Broken pipe|EOF occurred|reset by peer"):
                send_until_refused(dead)
            with pytest.raises(ssl.SSLWantReadError):
                alive.recv(10)
        peer.send(b"hello")
        alive.setblocking(True)
        assert alive.recv(10) == b"hello"


def test_errors_are_raised_as_they_are_and_then_cleared(monkeypatch):
    cleared = []
    monkeypatch.setattr(dask_tls, "clear_errors", lambda: cleared.append(True))

    def failing(error):
        def operation(_self):
            raise error

        return dask_tls.keep_errors_apart(operation)

    with pytest.raises(BrokenPipeError):
        failing(BrokenPipeError())(None)
    assert cleared == [True]
    with pytest.raises(ssl.SSLWantReadError):
        failing(ssl.SSLWantReadError())(None)
    assert cleared == [True], "Python itself clears those of OpenSSL"
