"""Reprise, an inference server for ONNX models on CPUs.

    import reprise

    with reprise.serve("folder") as server:     # returns when the model answers
        print(server.url, server.grpc, server.models)

The programs `reprised` and `reprise` come with this module: `reprise.program("reprised")` is where.
"""

from .programs import program
from .serving import Server, ServeError, serve

__all__ = ["Server", "ServeError", "program", "serve"]
