#!/usr/bin/env python3
"""The job of batch_embed.py on Ray Data, which starts a daemon on each node of a Ray cluster and places the parts.

    ray_embed.py texts.txt vectors --model minilm=FOLDER

The parts, their files and how a job is resumed are the same as in batch_embed.py: a job that one of them began may be
finished by the other. `texts`, `vectors` and FOLDER are on storage that all nodes see. A daemon that ends is
started again; a node that goes has its parts embedded elsewhere.
"""

import argparse
import concurrent.futures
import pathlib
import sys
import time

import numpy as np
import ray
import reprise

import batch_embed


class Embedder:
    """An actor of Ray: a daemon, and the parts that it is given."""

    def __init__(self, flags, streams):
        self.flags = flags
        self.streams = streams
        self.pool = concurrent.futures.ThreadPoolExecutor(flags.concurrency)
        self.start()

    def start(self):
        name, path = self.flags.model.split("=", 1)
        self.name = name
        self.daemon = reprise.serve({name: path}, "--streams", self.streams)
        print(f"{self.daemon.url}: the daemon of node {ray.get_runtime_context().get_node_id()}", flush=True)

    def embed(self, texts):
        return batch_embed.embed(self.daemon.url, self.name, texts, None, self.flags.timeout)

    def vectors_of(self, texts):
        """Returns the vectors of a part; its requests are under way at the same time, `--concurrency` of them."""
        batches = [texts[i:i + self.flags.batch] for i in range(0, len(texts), self.flags.batch)]
        for failures in range(batch_embed.MOST_FAILURES):
            try:
                return np.concatenate(list(self.pool.map(self.embed, batches)))
            except OSError as why:
                print(f"{self.daemon.url}: {why}", file=sys.stderr)
                time.sleep(min(2 ** failures * 0.1, 5))
                if self.daemon.process.poll() is not None:
                    self.daemon.stop()
                    self.start()
        raise RuntimeError(f"the daemon failed {batch_embed.MOST_FAILURES} times in a row\n{self.daemon.log()}")

    def __call__(self, parts):
        for number, begin, count in zip(parts["number"], parts["begin"], parts["count"]):
            texts = batch_embed.texts_of(self.flags.texts, begin, count)
            batch_embed.write_part(pathlib.Path(self.flags.vectors), number, self.vectors_of(texts))
        return {"number": parts["number"], "texts": parts["count"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    batch_embed.add_arguments(parser)
    parser.add_argument("--model", required=True, metavar="NAME=PATH", help="as `reprised --model` takes it; a path")
    parser.add_argument("--daemons", type=int, help="how many; default: one for each node that has CPUs")
    parser.add_argument("--cpus", type=float, help="that a daemon reserves; default: all of the smallest node")
    flags = parser.parse_args()
    flags.texts, flags.vectors = str(pathlib.Path(flags.texts).resolve()), str(pathlib.Path(flags.vectors).resolve())

    parts, missing = batch_embed.open_job(flags, flags.model.split("=", 1)[0])
    ray.cloudpickle.register_pickle_by_value(batch_embed)  # nodes need not have this folder
    ray.init(log_to_driver=True)
    cpus = [node["Resources"]["CPU"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    reserved = flags.cpus or min(cpus)
    data = ray.data.from_items([{"number": n, "begin": parts[n][0], "count": parts[n][1]} for n in missing],
                               override_num_blocks=max(1, len(missing)))
    begin, texts = time.monotonic(), 0
    if missing:
        done = data.map_batches(
            Embedder, fn_constructor_args=(flags, max(1, int(reserved))), batch_size=1, num_cpus=reserved,
            compute=ray.data.ActorPoolStrategy(size=flags.daemons or len(cpus)))
        texts = sum(row["texts"] for row in done.iter_rows())
    batch_embed.report(parts, missing, time.monotonic() - begin)
    assert texts == sum(parts[n][1] for n in missing)


if __name__ == "__main__":
    main()
