"""Several clients at once."""

import contextlib
from concurrent.futures import ThreadPoolExecutor


def together(work, arguments, clients=None):
    """Calls `work` with each of `arguments`, `clients` (all) of them at a time.

    Returns their results, in the order of `arguments`; raises the error that one of them raised.
    """
    arguments = list(arguments)
    with ThreadPoolExecutor(clients or len(arguments)) as pool:
        return list(pool.map(work, arguments))


@contextlib.contextmanager
def meanwhile(work, arguments):
    """Calls `work` with each of `arguments`, all at the same time, while the block runs.

    Yields their futures; the end of the block waits for them.
    """
    arguments = list(arguments)
    with ThreadPoolExecutor(len(arguments)) as pool:
        yield [pool.submit(work, argument) for argument in arguments]
