"""HTTP/2 by hand: frames that no client library would send."""

import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 2, 3, 4, 6, 7, 8, 9)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
SETTINGS_MAX_CONCURRENT_STREAMS, SETTINGS_INITIAL_WINDOW_SIZE = 3, 4
CANCEL = 8


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(**values):
    names = {"initial_window_size": SETTINGS_INITIAL_WINDOW_SIZE}
    return frame(SETTINGS, 0, 0,
                 b"".join(struct.pack(">HI", names[name], v) for name, v in values.items()))


def literal(name, value):
    """Makes a field of a header as HPACK has it, without any index (names and values below 127 bytes)."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def call_header(path, *fields):
    """Returns the header of a call of gRPC."""
    return b"".join(literal(name, value) for name, value in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()),
        (b":authority", b"a"), (b"content-type", b"application/grpc"), (b"te", b"trailers"),
        *fields))


def whole_call(path, stream, body, *fields):
    """Makes a call of one message, all of it."""
    return (frame(HEADERS, END_HEADERS, stream, call_header(path, *fields)) +
            frame(DATA, END_STREAM, stream, message(body)))


def message(body, length=None):
    """Makes a message of gRPC; `length`: the length that its prefix says instead."""
    return b"\0" + struct.pack(">I", len(body) if length is None else length) + body


class Connection:
    """A connection of HTTP/2 that has begun."""

    def __init__(self, port, begin=PREFACE + settings(), tls=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket)
        self.unread = b""
        self.socket.sendall(begin)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """Sends bytes; returns False if the server has closed the connection."""
        try:
            self.socket.sendall(data)
            return True
        except (OSError, ssl.SSLError):
            return False

    def _read(self, size):
        while len(self.unread) < size:
            try:
                more = self.socket.recv(1 << 16)
            except (ConnectionError, ssl.SSLError):
                more = b""
            if not more:
                return None
            self.unread += more
        data, self.unread = self.unread[:size], self.unread[size:]
        return data

    def frames(self):
        """Yields (kind, flags, stream, payload) of the frames that the server sends, until it closes."""
        while (head := self._read(9)) is not None:
            length = int.from_bytes(head[:3], "big")
            payload = self._read(length)
            if payload is None:
                return
            yield head[3], head[4], int.from_bytes(head[5:9], "big") & 0x7FFFFFFF, payload

    def first(self, kind):
        """Returns the first frame of a kind that comes; None: the server closed before."""
        return next((f for f in self.frames() if f[0] == kind), None)
