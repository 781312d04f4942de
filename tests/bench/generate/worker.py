"""One peer that makes tokens, in a process of its own, driven line by line as bench_engine is.

python worker.py llama.cpp|openvino-genai|onnxruntime-genai FOLDER THREADS

    {"op": "generate", "prompts": [[id, ...], ...], "tokens": N}
      -> {"prompt_ns": ..., "step_ns": ..., "ns": ...}, until the first token of all prompts, the median
    of a step after it, and all
    {"op": "forced", "prompt": [id, ...], "ids": [id, ...]}
      -> {"ids": [...]}, the best token at each position in place of `ids`
    {"op": "memory"} -> {"rss_kb": ...}

All are greedy and end after N tokens, whatever these are. weights.py writes FOLDER.
"""

import json
import pathlib
import re
import statistics
import sys
import time

import numpy as np

CONTEXT = 2048


def times(begin, ends):
    """Until the first token, the median of a step after it, and all, by when each step ended."""
    steps = [b - a for a, b in zip(ends, ends[1:])]
    return ends[0] - begin, statistics.median(steps) if steps else 0, ends[-1] - begin


class LlamaCpp:
    SEQUENCES, EACH, BATCH = 16, 1280, 512

    def __init__(self, folder, threads):
        import llama_cpp as api

        self.api = api
        api.llama_backend_init()
        silent = api.llama_log_callback(lambda level, text, data: None)
        self.silent = silent  # the library keeps no reference
        api.llama_log_set(silent, None)
        self.model = api.llama_model_load_from_file(
            str(folder / "model.gguf").encode(), api.llama_model_default_params())
        if not self.model:
            raise RuntimeError("llama.cpp cannot read model.gguf")
        options = api.llama_context_default_params()
        # Each sequence has cells of its own, which is faster where prompts have nothing in common.
        options.n_ctx, options.n_seq_max = self.SEQUENCES * self.EACH, self.SEQUENCES
        options.n_batch = options.n_ubatch = self.BATCH
        options.n_threads = options.n_threads_batch = threads
        options.kv_unified = False
        self.context = api.llama_init_from_model(self.model, options)
        self.batch = api.llama_batch_init(self.BATCH, 0, 1)
        self.vocabulary = api.llama_vocab_n_tokens(api.llama_model_get_vocab(self.model))

    def compute(self, rows):
        """Computes the best token of each of `rows` (id, position, sequence, whether it is wanted)."""
        best = []
        for begin in range(0, len(rows), self.BATCH):
            part = rows[begin:begin + self.BATCH]
            self.batch.n_tokens = len(part)
            for i, (token, position, sequence, wanted) in enumerate(part):
                self.batch.token[i], self.batch.pos[i] = token, position
                self.batch.n_seq_id[i], self.batch.seq_id[i][0] = 1, sequence
                self.batch.logits[i] = wanted
            if self.api.llama_decode(self.context, self.batch) != 0:
                raise RuntimeError("llama_decode failed")
            for i, row in enumerate(part):
                if row[3]:
                    scores = self.api.llama_get_logits_ith(self.context, i)
                    best.append(int(np.ctypeslib.as_array(scores, (self.vocabulary,)).argmax()))
        return best

    def generate(self, prompts, tokens):
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        begin = time.perf_counter_ns()
        last = self.compute([(token, i, sequence, i + 1 == len(ids))
                             for sequence, ids in enumerate(prompts)
                             for i, token in enumerate(ids)])
        ends = [time.perf_counter_ns()]
        for step in range(tokens - 1):
            last = self.compute([(token, len(prompts[sequence]) + step, sequence, True)
                                 for sequence, token in enumerate(last)])
            ends.append(time.perf_counter_ns())
        return times(begin, ends)

    def forced(self, prompt, ids):
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        together = prompt + ids[:-1]
        return self.compute([(token, i, 0, i + 1 >= len(prompt))
                             for i, token in enumerate(together)])


class OpenVinoGenAI:
    """Its continuous batching, without reuse of prefixes: the same prompt comes again and again."""

    def __init__(self, folder, threads):
        import openvino as ov
        import openvino_genai as api

        self.api, self.ov = api, ov
        scheduler = api.SchedulerConfig()
        scheduler.cache_size = 2  # GB
        scheduler.enable_prefix_caching = False
        scheduler.max_num_batched_tokens = 2 * CONTEXT
        self.pipeline = api.LLMPipeline(str(folder / "model.gguf"), "CPU", scheduler_config=scheduler,
                                        INFERENCE_NUM_THREADS=threads)

    def run(self, prompts, tokens):
        longest = max(map(len, prompts))
        ids, mask = np.zeros((2, len(prompts), longest), np.int64)
        for row, prompt in enumerate(prompts):  # filled at the left
            ids[row, longest - len(prompt):] = prompt
            mask[row, longest - len(prompt):] = 1
        config = self.api.GenerationConfig()
        config.max_new_tokens, config.ignore_eos, config.do_sample = tokens, True, False
        inputs = self.api.TokenizedInputs(self.ov.Tensor(ids), self.ov.Tensor(mask))
        begin = time.perf_counter_ns()
        answer = self.pipeline.generate(inputs, config)
        return time.perf_counter_ns() - begin, answer

    def generate(self, prompts, tokens):
        ns, answer = self.run(prompts, tokens)
        metrics = answer.perf_metrics
        # Microseconds of a step, over the sequences in it.
        shares = list(metrics.raw_metrics.m_durations)
        step = statistics.median(shares) * len(prompts) * 1e3 if shares else 0
        return metrics.get_ttft().mean * 1e6, step, ns

    def forced(self, prompt, ids):
        return [int(self.run([prompt + ids[:i]], 1)[1].tokens[0][-1]) for i in range(len(ids))]


class OnnxRuntimeGenAI:
    def __init__(self, folder, threads):
        import onnxruntime_genai as api

        self.api = api
        config = api.Config(str(folder))
        config.overlay(json.dumps({"model": {"decoder": {"session_options": {
            "intra_op_num_threads": threads}}}}))
        self.model = api.Model(config)

    def start(self, prompts, length):
        parameters = self.api.GeneratorParams(self.model)
        parameters.set_search_options(max_length=length, min_length=length, do_sample=False,
                                      batch_size=len(prompts))
        generator = self.api.Generator(self.model, parameters)
        longest = max(map(len, prompts))
        if min(map(len, prompts)) != longest:
            raise RuntimeError("onnxruntime-genai batches prompts of one length alone")
        begin = time.perf_counter_ns()
        generator.append_tokens(np.array(prompts, np.int32))
        return begin, generator

    def generate(self, prompts, tokens):
        begin, generator = self.start(prompts, len(prompts[0]) + tokens)
        generator.generate_next_token()
        ends = [time.perf_counter_ns()]
        for _ in range(tokens - 1):
            generator.generate_next_token()
            ends.append(time.perf_counter_ns())
        return times(begin, ends)

    def forced(self, prompt, ids):
        best, (_, generator) = [], self.start([prompt], CONTEXT)
        for token in ids:
            best.append(int(np.asarray(generator.get_logits()).reshape(-1).argmax()))
            generator.append_tokens(np.array([[token]], np.int32))
        return best


PEERS = {"llama.cpp": LlamaCpp, "openvino-genai": OpenVinoGenAI,
         "onnxruntime-genai": OnnxRuntimeGenAI}


def rss_kb():
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path("/proc/self/status").read_text()).group(1))


def answer(peer, command):
    if command["op"] == "generate":
        return dict(zip(("prompt_ns", "step_ns", "ns"),
                        peer.generate(command["prompts"], command["tokens"])))
    if command["op"] == "forced":
        return {"ids": peer.forced(command["prompt"], command["ids"])}
    return {"rss_kb": rss_kb()}


def guarded(action):
    """Returns the answer of `action`; whatever a peer throws becomes an answer too, and the bench goes on."""
    try:
        return action()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    name, folder, threads = sys.argv[1:]
    peers = []

    def load():
        begin = time.perf_counter_ns()
        peers.append(PEERS[name](pathlib.Path(folder), int(threads)))
        return {"load_ns": time.perf_counter_ns() - begin}

    print(json.dumps(guarded(load)), flush=True)
    for line in sys.stdin if peers else ():
        print(json.dumps(guarded(lambda: answer(peers[0], json.loads(line)))), flush=True)


main()
