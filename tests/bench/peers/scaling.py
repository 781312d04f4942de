"""How much faster a call becomes with two threads, beside the gains of the peers from them.

See tests/bench/peers/run. A side with one thread and one with two take turns within every round, so
that a busy machine hurts both alike. Where two CPUs share a core no side can double: the best peer's
own gain on the same machine is the measure.

With --busy other processes want the CPUs meanwhile, as neighbours of a container do: a second thread
that the system does not run must not make a call slower than one thread does it. Times are then
means of a turn, as calls that wait for a CPU are the ones to find.
"""

import argparse
import contextlib
import pathlib
import statistics
import subprocess
import sys
import tempfile

from peers import make_inputs
from side import Side, warn_if_busy

LINES = "1x16 1x32 1x64 1x128 1x256 1x512 8x32 8x128"
PEERS = ["onnxruntime", "openvino-static"]


@contextlib.contextmanager
def busy_processes(count):
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeat", type=int, default=5, help="calls of a side in one turn")
    parser.add_argument("--lines", default=LINES, help="ROWSxLENGTH ...")
    parser.add_argument("--max-isa", default="")
    parser.add_argument("--busy", type=int, default=0, metavar="N",
                        help="so many other processes keep CPUs busy")
    arguments = parser.parse_args()

    warn_if_busy()
    worker = str(pathlib.Path(__file__).with_name("peer_worker.py"))
    cap = ["--max-isa", arguments.max_isa] if arguments.max_isa else []
    sides = {}
    for threads in (1, 2):
        sides["reprise", threads] = Side("reprise", [
            arguments.engine, arguments.model, "--threads", str(threads), "--packing", "auto", *cap])
        for peer in PEERS:
            sides[peer, threads] = Side(peer, [sys.executable, worker, peer, arguments.model,
                                               str(threads)])
    names = ["reprise", *PEERS]
    of_turn = statistics.mean if arguments.busy else statistics.median
    print("median ms of one thread and of two, and how many times as fast two are"
          + (f"; {arguments.busy} busy processes beside them" if arguments.busy else ""))
    print(f"{'rows x length':>14}" + "".join(f"{n:>26}" for n in names))
    with tempfile.TemporaryDirectory() as scratch, busy_processes(arguments.busy):
        for line in arguments.lines.split():
            rows, length = (int(x) for x in line.split("x"))
            inputs = make_inputs(pathlib.Path(scratch), rows, length, seed=rows * 1000 + length)
            times = {key: [] for key in sides}
            for turn in range(arguments.rounds + 1):
                for key, side in sides.items():
                    ns = side.ask(op="time", inputs=inputs, repeat=arguments.repeat)["ns"]
                    if turn > 0:  # The first turn of a side pays for the new shape.
                        times[key].append(of_turn(ns) / 1e6)
            median = {key: statistics.median(t) for key, t in times.items()}
            print(f"{line:>14}" + "".join(
                f"{median[n, 1]:11.2f}{median[n, 2]:9.2f}{median[n, 1] / median[n, 2]:6.2f}"
                for n in names), flush=True)


if __name__ == "__main__":
    main()
