"""Several clients at once."""

from concurrent.futures import ThreadPoolExecutor


def together(work, arguments):
    """Calls `work` with each of `arguments`, all at the same time; raises what one of them raised."""
    arguments = list(arguments)
    with ThreadPoolExecutor(len(arguments)) as pool:
        list(pool.map(work, arguments))
