"""Reprise, an inference server for ONNX models on CPUs.

    import reprise

    with reprise.serve("folder") as server:     # returns when the model answers
        print(server.url, server.grpc, server.models)

The programs `reprised` and `reprise` come with this module: `reprise.program("reprised")` is where.
`reprise.DataLoader` reads images in batches, for which it needs numpy.
"""

from .programs import program
from .serving import Server, ServeError, serve

_OF_DATA = ("Batch", "DataLoader", "Dataset", "DistributedSampler")

__all__ = ["Server", "ServeError", "program", "serve", *_OF_DATA]


def __getattr__(name):
    if name not in _OF_DATA:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import data
    return getattr(data, name)
