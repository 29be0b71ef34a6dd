"""Keeps an error of one TLS connection from ending others; loaded by the processes of a Dask pool.

Some builds of Python leave the error of a failed system call in OpenSSL's list of errors, such as 3.13.5 with OpenSSL 3.5
of Debian 13. The next operation of the thread, on whichever connection, then fails with it: one broken pipe, such as
that of a worker that ends, would close the connection of a client. So the list is cleared after each such error.
"""

import contextlib
import functools
import ssl

_OPERATIONS = ("read", "write", "send", "do_handshake", "unwrap")
_MISSING = "/nonexistent/certificate"


def clear_errors():
    """Clear OpenSSL's list of errors of this thread: to load a certificate does that first, and last if it fails."""
    with contextlib.suppress(OSError):
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(_MISSING)


def keep_errors_apart(operation):
    """The operation of a TLS socket, after which no error of a system call is left."""

    @functools.wraps(operation)
    def apart(self, *args, **kwargs):
        try:
            return operation(self, *args, **kwargs)
        except ssl.SSLError:
            raise
        except OSError:
            clear_errors()
            raise

    apart.keeps_errors_apart = True
    return apart


def dask_setup(_server):
    """Called by Dask when it loads this file."""
    for name in _OPERATIONS:
        operation = getattr(ssl.SSLSocket, name)
        if not getattr(operation, "keeps_errors_apart", False):
            setattr(ssl.SSLSocket, name, keep_errors_apart(operation))
