"""Tokens of a real decoder: Reprise beside llama.cpp, OpenVINO GenAI and onnxruntime-genai.

See tests/bench/generate/run. Within a round every side has its turn, so that a busy machine hurts
all of them alike; medians of the rounds are shown, the ratio to each peer, and the share of the floor:
max(operations / measured peak, bytes / measured bandwidth).
"""

import argparse
import json
import os
import pathlib
import statistics
import sys

import numpy as np

import floor
import oracle
import served
from side import cpu_name, warn_if_busy
from sides import Peer, Reprise, Unavailable

PEERS = "llama.cpp openvino-genai onnxruntime-genai"
ROWS = "past32 past512 rows8 prompt128 prompt512 batch served ready oracle"
# How many prompts and the past that a step has; how long the prompt is.
STEP_ROWS = {"past32": (1, 32), "past512": (1, 512), "rows8": (8, 128)}
PROMPT_ROWS = {"prompt128": 128, "prompt512": 512}
BATCH, BATCH_MEAN, BATCH_TOKENS = 16, 221, 64


def random_prompts(shape, lengths, seed):
    rng = np.random.default_rng(seed)
    return [[int(x) for x in rng.integers(3, shape["vocabulary"], n)] for n in lengths]


def batch_lengths():
    """16 lengths, always the same, whose mean is 221."""
    drawn = np.random.default_rng(1).lognormal(0, 0.5, BATCH)
    lengths = [int(x) for x in drawn * BATCH_MEAN / drawn.mean()]
    lengths[0] += BATCH * BATCH_MEAN - sum(lengths)
    return lengths


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.build = pathlib.Path(os.environ["REPRISE_BUILD_DIR"])
        self.folder = pathlib.Path(arguments.folder)
        self.shape = json.loads((self.folder / "shape.json").read_text())
        self.worker = pathlib.Path(__file__).with_name("worker.py")
        self.missing, self.results = {}, {}
        self.rates = floor.measure(self.build, self.folder / "model.onnx", self.shape)
        print(f"{cpu_name()}, {os.cpu_count()} CPUs: one core makes {self.rates.gflops:.0f} GF/s "
              f"of float32 multiply-adds and reads {self.rates.gbytes:.1f} GB/s of {self.shape['weight_bytes'] / 1e6:.0f} "
              "MB, the products' weights", flush=True)

    def sides(self, threads):
        """Ours, then the peers that are there; those that are not are said once."""
        sides = [Reprise(self.build, self.folder, threads, self.arguments.precision)]
        for name in self.arguments.peers.split():
            if name in self.missing:
                continue
            try:
                sides.append(Peer(name, self.folder, threads, self.worker, self.arguments.peers_python))
            except Unavailable as error:
                self.lose(name, error)
        return sides

    def lose(self, name, error):
        self.missing[name] = str(error)
        print(f"without {name}: {error}", flush=True)

    def alternate(self, sides, ask):
        """Medians of ask(side, round) by side; a side that fails is left out of this row."""
        figures = {side.name: [] for side in sides}
        failed = set()
        for turn in range(self.arguments.rounds):
            for side in sides:
                if side.name in failed:
                    continue
                try:
                    figures[side.name].append(ask(side, turn))
                except Unavailable as error:
                    failed.add(side.name)
                    print(f"  {side.name} has no figure here: {error}", flush=True)
        return {name: statistics.median(x) for name, x in figures.items() if name not in failed}

    def show(self, row, title, unit, figures, floor_figure, less_is_better):
        ours = figures.get("reprise")
        parts = [f"{title}, {unit}: "]
        for name, value in figures.items():
            parts.append(f"{name} {value:.2f}" if value < 50 else f"{name} {value:.0f}")
            if name not in ("reprise", "served") and ours:
                parts[-1] += f" (ours {(value / ours if less_is_better else ours / value):.2f} times as fast)"
        share = None
        if ours and floor_figure:
            share = floor_figure / ours if less_is_better else ours / floor_figure
            parts.append(f"floor {floor_figure:.2f} (ours {share:.0%} of it)")
        print(parts[0] + ", ".join(parts[1:]), flush=True)
        self.results[row] = {"unit": unit, "medians": figures, "floor": floor_figure, "share": share}

    def step_row(self, row, sides):
        rows, past = STEP_ROWS[row]
        tokens = self.arguments.tokens
        # Prompts end where the middle of the new tokens has the past of the row's name.
        length = max(past - tokens // 2, 1)

        def ask(side, turn):
            prompts = random_prompts(self.shape, [length] * rows, turn)
            return side.generate(prompts, tokens)[1]

        seconds = self.alternate(sides, ask)
        least = floor.step_work(self.shape, [past] * rows).floor_s(self.rates)
        if rows == 1:
            self.show(row, f"one sequence, past {past}", "ms a token",
                      {name: s * 1e3 for name, s in seconds.items()}, least * 1e3, True)
        else:
            self.show(row, f"{rows} sequences, past {past}", "tokens a second",
                      {name: rows / s for name, s in seconds.items()}, rows / least, False)

    def prompt_row(self, row, sides):
        length = PROMPT_ROWS[row]
        seconds = self.alternate(
            sides, lambda side, turn: side.generate(random_prompts(self.shape, [length], turn), 1)[0])
        least = floor.prompt_work(self.shape, length).floor_s(self.rates)
        self.show(row, f"prompt of {length}", "tokens a second",
                  {name: length / s for name, s in seconds.items()}, length / least, False)

    def batch_row(self, row, sides):
        lengths = batch_lengths()
        new = BATCH * BATCH_TOKENS
        seconds = self.alternate(sides, lambda side, turn: side.generate(
            random_prompts(self.shape, lengths, turn), BATCH_TOKENS)[2])
        least = floor.batch_floor_s(self.shape, lengths, BATCH_TOKENS, self.rates, 2)
        title = f"{BATCH} prompts of {BATCH_MEAN} tokens in the mean, {BATCH_TOKENS} new each, two threads"
        self.show(row, title, "new tokens a second", {name: new / s for name, s in seconds.items()}, new / least, False)

    def served_row(self, row, sides):
        """Compares the daemon over gRPC with each side's own process on such prompts."""
        a = self.arguments
        tokens, daemon = a.answer, served.Served(self.folder, 2)

        def ask(side, turn):
            if side is daemon:
                return daemon.load(a.clients, a.requests, tokens, turn)["new_tokens_per_second"]
            prompts = random_prompts(self.shape, served.lengths_of(a.clients, turn), turn)
            return a.clients * tokens / side.generate(prompts, tokens)[2]

        with daemon:
            figures = self.alternate([*sides, daemon], ask)
            memory = daemon.memory_mb()
        loads = daemon.loads
        self.show(row, f"prompts lognormal around {served.MEDIAN}, answers of {tokens}, two threads",
                  "new tokens a second", figures, None, False)
        if "served" in figures and "reprise" in figures:
            share = figures["served"] / figures["reprise"]
            print(f"  served over gRPC to {a.clients} clients: {share:.2f} of what the engine makes in process, "
                  f"memory {memory:.0f} MB")
            self.results[row] |= {"served_share": share, "loads": loads}
        for load in loads:
            first, between = load["first_token_ms"], load["between_tokens_ms"]
            print(f"  first token, ms: p50 {first['p50']:.1f}, p95 {first['p95']:.1f}; between tokens: p50 "
                  f"{between['p50']:.1f}, p99 {between['p99']:.1f}, which may be the median, "
                  f"{served.STALL_MS} ms and a step: {2 * between['p50'] + served.STALL_MS:.1f}; "
                  f"{load['failed']} failed")

    def ready_row(self, row, sides):
        times, memory = served.time_to_ready(self.folder, 1, self.arguments.rounds)
        figures = {"reprise": statistics.median(times)}
        print(f"file to ready, ms: reprise {figures['reprise']:.0f} (the daemon, process and all), " +
              ", ".join(f"{side.name} {side.load_s * 1e3:.0f}" for side in sides[1:]))
        # A peer makes room for its cache when it is first asked.
        room = {"reprise": statistics.median(memory)}
        for side in sides[1:]:
            try:
                room[side.name] = side.rss_mb()
            except Unavailable as error:
                print(f"  {side.name} has no figure here: {error}")
        print("memory then, MB: " + ", ".join(f"{name} {x:.0f}" for name, x in room.items()) +
              f"; the products' weights are {self.shape['weight_bytes'] / 1e6:.0f}; llama.cpp has made "
              "room for all its caches")
        self.results[row] = {"ready_ms": figures, "memory_mb": room}

    def run(self):
        rows = self.arguments.rows.split()
        makers = ([(STEP_ROWS, self.step_row), (PROMPT_ROWS, self.prompt_row), (["ready"], self.ready_row)],
                  [(["batch"], self.batch_row), (["served"], self.served_row)])
        good = True
        for threads, kinds in enumerate(makers, 1):
            wanted = [(row, make) for names, make in kinds for row in names if row in rows]
            if not wanted and not (threads == 1 and "oracle" in rows):
                continue
            sides = self.sides(threads)
            if threads == 1 and "oracle" in rows:
                a = self.arguments
                good = oracle.check(self.folder, sides[0], sides[1:], self.shape["prompts"][:a.prompts],
                                    a.greedy, a.forced)
            for row, make in wanted:
                make(row, sides)
            for side in sides:
                side.close()
        return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True, help="what weights.py wrote")
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--rows", default=ROWS)
    parser.add_argument("--peers", default=PEERS)
    parser.add_argument("--precision", default="exact", choices=["exact", "bf16", "int8"],
                        help="ours, but for the rows of the daemon")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=33, help="of an answer whose steps are timed")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=64, help="of a served load")
    parser.add_argument("--answer", type=int, default=128, help="new tokens of a served answer")
    parser.add_argument("--prompts", type=int, default=4, help="that the oracle compares")
    parser.add_argument("--greedy", type=int, default=64, help="tokens of them")
    parser.add_argument("--forced", type=int, default=64, help="tokens that peers are given")
    parser.add_argument("--json", help="write the figures")
    arguments = parser.parse_args()
    for given, known in ((arguments.rows, ROWS), (arguments.peers, PEERS)):
        unknown = set(given.split()) - set(known.split())
        if unknown:
            sys.exit(f"'{' '.join(sorted(unknown))}' is none of: {known}")
    busy = warn_if_busy()
    bench = Bench(arguments)
    good = bench.run()
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(
            {"cpu": cpu_name(), "cpus": os.cpu_count(), "busy": busy, "rounds": arguments.rounds,
             "gflops": bench.rates.gflops, "gbytes": bench.rates.gbytes, "missing": bench.missing,
             "rows": bench.results}, indent=1) + "\n")
    for name in bench.missing:
        print(f"missing: {name}: {bench.missing[name]}")
    if not good:
        sys.exit("an answer is not what the weights say")


if __name__ == "__main__":
    main()
