"""The sides of the table, all asked alike: ours is `reprise generate`, a peer is a worker."""

import json
import re
import subprocess


class Unavailable(Exception):
    """A side that is not there, or cannot do a task; the text says why."""


class Reprise:
    """Asks each question in a process of its own; its measurements begin when the model is loaded."""

    name = "reprise"

    def __init__(self, build, folder, threads, precision="exact"):
        self.command = [str(build / "reprise"), "generate", str(folder / "model.onnx"), "--speed",
                        "--no-speculation", "--threads", str(threads), "--precision", precision]

    def run(self, prompts, tokens):
        ids = [x for prompt in prompts for x in ("--ids", ",".join(map(str, prompt)))]
        done = subprocess.run([*self.command, "--max-tokens", str(tokens), *ids],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1800)
        if done.returncode != 0:
            raise Unavailable(done.stderr.strip()[-300:])
        return done.stdout

    def generate(self, prompts, tokens):
        """Until the first token and of a step after it (medians), and until the last; seconds."""
        out = self.run(prompts, tokens)
        total = float(re.search(r"new ones in ([\d.]+) ms", out).group(1))
        first = float(re.search(r"first token ([\d.]+) ms", out).group(1))
        step = float(re.search(r"each after it ([\d.]+) ms", out).group(1))
        return first / 1e3, step / 1e3, total / 1e3

    def greedy(self, prompt, tokens):
        line = next(x for x in self.run([prompt], tokens).splitlines() if x.startswith("0 "))
        if line.split()[1] not in ("length", "stop"):
            raise Unavailable(line)
        return list(map(int, line.split()[2].split(",")))

    def close(self):
        pass


class Peer:
    """A worker with one number of threads; where it fails it is out for the rest of the run."""

    def __init__(self, name, folder, threads, worker, python):
        self.name = name
        self.process = subprocess.Popen(
            [str(python), str(worker), name, str(folder), str(threads)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.load_s = self._answer()["load_ns"] / 1e9

    def _answer(self):
        # Libraries print lines of their own.
        for line in self.process.stdout:
            if line.startswith("{"):
                answer = json.loads(line)
                if "error" in answer:
                    raise Unavailable(answer["error"])
                return answer
        raise Unavailable(f"its process ended with code {self.process.wait()}")

    def ask(self, **command):
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Unavailable("its process has ended") from None
        return self._answer()

    def generate(self, prompts, tokens):
        answer = self.ask(op="generate", prompts=prompts, tokens=tokens)
        return answer["prompt_ns"] / 1e9, answer["step_ns"] / 1e9, answer["ns"] / 1e9

    def forced(self, prompt, ids):
        return self.ask(op="forced", prompt=prompt, ids=ids)["ids"]

    def rss_mb(self):
        return self.ask(op="memory")["rss_kb"] / 1024

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
        self.process.wait()
