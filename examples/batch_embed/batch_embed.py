#!/usr/bin/env python3
"""Vectors for a large file of texts, one a line, from several daemons: resumable, each text exactly once.

    batch_embed.py texts.txt vectors --model minilm --server http://node-1:8000 --server http://node-2:8000

The texts are cut into parts. A part's vectors are written next to their final name and then renamed, so that a
file `part-00000012.npy` in the folder is whole: the next run, after a crash or on another machine, asks only for
the parts that are missing. Rows are in the order of the lines; empty lines have vectors as well.

Each daemon takes the next part when it has room, so that a slow one does not hold up the others. A part whose
daemon fails goes back, and a daemon that fails five times in a row is left out. Needs numpy alone.
"""

import argparse
import json
import os
import pathlib
import queue
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np

MOST_FAILURES = 5


class Refused(Exception):
    """The daemon says that the request is wrong: no other one will answer it."""


def parts_of(path, size):
    """(first byte, number of texts) of each part of the file."""
    parts, begin, count, at = [], 0, 0, 0
    with open(path, "rb") as file:
        for line in file:
            at += len(line)
            count += 1
            if count == size:
                parts.append((begin, count))
                begin, count = at, 0
    if count:
        parts.append((begin, count))
    return parts


def texts_of(path, begin, count):
    with open(path, "rb") as file:
        file.seek(begin)
        return [file.readline().decode(errors="replace").rstrip("\r\n") for _ in range(count)]


def embed(server, model, texts, key, timeout_s):
    """Returns the vectors, [texts, width] in float32. OSError: the daemon cannot be reached, or is busy."""
    request = urllib.request.Request(
        f"{server}/v1/embeddings", json.dumps({"model": model, "input": texts}).encode(),
        {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})})
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as reply:
            data = json.load(reply)["data"]
    except urllib.error.HTTPError as error:
        said = error.read().decode(errors="replace")
        if error.code in (429, 500, 502, 503, 504):  # busy, or leaving
            raise OSError(f"{error.code} {said}") from error
        raise Refused(f"{error.code} {said}") from error
    return np.array([row["embedding"] for row in sorted(data, key=lambda row: row["index"])], np.float32)


def write_part(folder, number, vectors):
    """So that the file of the final name is whole, also after a loss of power."""
    final = folder / f"part-{number:08}.npy"
    partial = folder / f".{final.name}.{os.getpid()}.{threading.get_ident()}"
    with open(partial, "wb") as file:
        np.save(file, vectors)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, final)


def open_job(flags, model):
    """Returns all parts of the job, and the numbers of those that are missing in its folder, which is made.

    Refuses a folder of another job: its parts would be other texts'.
    """
    folder = pathlib.Path(flags.vectors)
    folder.mkdir(parents=True, exist_ok=True)
    now = {"texts": os.path.getsize(flags.texts), "part": flags.part, "model": model}
    path = folder / "job.json"
    if path.exists() and json.loads(path.read_text()) != now:
        sys.exit(f"{path}: the folder is of another job, {path.read_text().strip()}, not {json.dumps(now)}")
    partial = folder / f".job.json.{os.getpid()}"
    partial.write_text(json.dumps(now) + "\n")
    os.replace(partial, path)
    parts = parts_of(flags.texts, flags.part)
    return parts, [n for n in range(len(parts)) if not (folder / f"part-{n:08}.npy").exists()]


def report(parts, missing, seconds):
    texts = sum(count for _, count in parts)
    print(f"{texts} texts in {len(parts)} parts, {len(parts) - len(missing)} of them there before; "
          f"{len(missing)} parts in {seconds:.1f} s")


class Job:
    """The parts that are missing, and the daemons that make them."""

    def __init__(self, flags):
        self.flags = flags
        self.folder = pathlib.Path(flags.vectors)
        self.parts, self.missing = open_job(flags, flags.model)
        self.todo = queue.SimpleQueue()
        for number in self.missing:
            self.todo.put(number)
        self.left = len(self.missing)
        self.lock = threading.Lock()
        self.refused = None

    def work(self, server):
        """Does a thread's part of the job: one request of the daemon at a time."""
        failures = 0
        while self.left > 0 and self.refused is None and failures < MOST_FAILURES:
            try:
                number = self.todo.get(timeout=0.1)
            except queue.Empty:  # others may give theirs back
                continue
            try:
                texts = texts_of(self.flags.texts, *self.parts[number])
                vectors = np.concatenate([
                    embed(server, self.flags.model, texts[i:i + self.flags.batch], self.flags.key, self.flags.timeout)
                    for i in range(0, len(texts), self.flags.batch)])
                write_part(self.folder, number, vectors)
            except Refused as why:
                self.refused = f"{server}, part {number}: {why}"
            except OSError as why:
                self.todo.put(number)
                failures += 1
                print(f"{server}: {why}", file=sys.stderr)
                time.sleep(min(2 ** failures * 0.1, 5))
            else:
                failures = 0
                with self.lock:
                    self.left -= 1
        if failures == MOST_FAILURES:
            print(f"{server}: left out", file=sys.stderr)

    def run(self):
        begin = time.monotonic()
        threads = [threading.Thread(target=self.work, args=(server,))
                   for server in self.flags.server for _ in range(self.flags.concurrency)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        if self.refused is not None:
            sys.exit(f"refused: {self.refused}")
        if self.left > 0:
            sys.exit(f"{self.left} of {len(self.parts)} parts are missing: no daemon is left; run again")
        report(self.parts, self.missing, time.monotonic() - begin)


def add_arguments(parser):
    """Adds the arguments that are the same in both forms of the job."""
    parser.add_argument("texts", help="a file with a text a line")
    parser.add_argument("vectors", help="a folder: part-00000000.npy and on")
    parser.add_argument("--part", type=int, default=4096, help="texts of a file")
    parser.add_argument("--batch", type=int, default=64, help="texts of a request")
    parser.add_argument("--concurrency", type=int, default=2, help="requests of each server at a time")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of a request")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--model", required=True)
    parser.add_argument("--server", action="append", required=True, help="may be given more than once")
    parser.add_argument("--key", default=os.environ.get("REPRISE_API_KEY"), help="default: $REPRISE_API_KEY")
    Job(parser.parse_args()).run()


if __name__ == "__main__":
    main()
