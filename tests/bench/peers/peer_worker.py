"""One peer in a process of its own, driven line by line with the protocol of bench_engine.

python peer_worker.py onnxruntime|openvino-dynamic|openvino-static|openvino-static-as-shipped MODEL THREADS

An input has a dtype of its own where it is not int64 ("dtype": "float32").

A trace: requests of one row each, `batch` of those within a window together, sorted by length and
padded to the longest; `buckets`: each padded to the next of these lengths instead.
"""

import json
import sys
import time

import numpy as np


class OnnxRuntime:
    def __init__(self, model, threads):
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.names = [i.name for i in self.session.get_inputs()]

    def run(self, arrays):
        return self.session.run(None, dict(zip(self.names, arrays)))


class OpenVino:
    """`static`: one model a shape, compiled outside of the timed calls. `as_shipped`: its own choice
    of precision, whatever it is; else float32 as the other sides."""

    def __init__(self, model, threads, static, as_shipped):
        import openvino as ov

        self.core, self.static, self.compiled = ov.Core(), static, {}
        self.config = {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
        }
        if not as_shipped:
            # Its defaults are bfloat16 where the CPU has it, and activations rounded to int8 where
            # weights are stored as int8: answers a thousand times further off.
            self.config |= {
                "INFERENCE_PRECISION_HINT": "f32",
                "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
            }
        self.path = model
        self.names = [i.any_name for i in self.core.read_model(model).inputs]
        if not static:
            self.compiled[None] = self._compile(None)

    def _compile(self, shapes):
        model = self.core.read_model(self.path)
        if shapes is not None:
            model.reshape({i.any_name: list(s) for i, s in zip(model.inputs, shapes)})
        return self.core.compile_model(model, "CPU", self.config).create_infer_request()

    def run(self, arrays):
        key = tuple(a.shape for a in arrays) if self.static else None
        if key not in self.compiled:
            self.compiled[key] = self._compile(key)
        request = self.compiled[key]
        request.infer(arrays, share_inputs=True)
        return [request.get_output_tensor(i).data for i in range(len(request.results))]


def batches(names, command):
    """Returns the inputs of every call that a trace becomes."""
    rng = np.random.default_rng(7)
    lengths, window, batch = command["lengths"], command["window"], command["batch"]
    for first in range(0, len(lengths), window):
        waiting = sorted(lengths[first:first + window])
        for at in range(0, len(waiting), batch):
            rows = waiting[at:at + batch]
            longest = rows[-1]
            if "buckets" in command:
                longest = next(b for b in command["buckets"] if b >= longest)
            valid = np.arange(longest) < np.array(rows)[:, None]
            yield [valid.astype(np.int64) if "mask" in name
                   else np.where(valid, rng.integers(1000, 21000, valid.shape), 0)
                   if "type" not in name else np.zeros(valid.shape, np.int64) for name in names]


def main():
    kind, model, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    start = time.perf_counter_ns()
    if kind == "onnxruntime":
        peer = OnnxRuntime(model, threads)
    else:
        peer = OpenVino(model, threads, "static" in kind, "shipped" in kind)
    print(json.dumps({"load_ns": time.perf_counter_ns() - start}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        if command["op"] == "memory":
            with open("/proc/self/status") as status:
                rss = next(int(l.split()[1]) for l in status if l.startswith("VmRSS:"))
            print(json.dumps({"rss_kb": rss}), flush=True)
            continue
        if command["op"] == "trace":
            calls = list(batches(peer.names, command))
            answer = {"ns": []}
            for _ in range(command.get("repeat", 1)):
                begin = time.perf_counter_ns()
                for arrays in calls:
                    peer.run(arrays)
                answer["ns"].append(time.perf_counter_ns() - begin)
            print(json.dumps(answer), flush=True)
            continue
        arrays = [
            np.fromfile(i["file"], dtype=i.get("dtype", "int64")).reshape(i["shape"])
            for i in command["inputs"]
        ]
        answer = {"ns": []}
        for i in range(command.get("repeat", 1)):
            begin = time.perf_counter_ns()
            outputs = peer.run(arrays)
            answer["ns"].append(time.perf_counter_ns() - begin)
            if i == 0 and "outputs" in command:
                for o, output in enumerate(outputs):
                    np.ascontiguousarray(output).tofile(f"{command['outputs']}.{o}")
        print(json.dumps(answer), flush=True)


main()
