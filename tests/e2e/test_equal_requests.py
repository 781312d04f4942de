"""Equal requests get equal bits: alone, asked again after found pages, in a crowd, in other chunks, on each ISA."""

import concurrent.futures
import pathlib

import numpy as np
import pytest

from testing import decoders, encoder_decoders
from testing.daemon import BUILD, Daemon
from testing.narrow_weights import FORMS, narrow
from testing.tokens import generate

CONTEXT = 192
# The sets that each cap adds, by a flag of /proc/cpuinfo that shows it.
CAPS = {"baseline": "sse2", "avx2": "avx2", "avx2_vnni": "avx_vnni", "avx512": "avx512dq", "avx512_vnni": "avx512_vnni",
        "avx512_bf16": "avx512_bf16", "amx": "amx_tile"}
FLAGS = set(pathlib.Path("/proc/cpuinfo").read_text().split("flags")[1].split("\n")[0].split())
TIERS = [cap for cap, flag in CAPS.items() if flag in FLAGS]
if "REPRISE_TIERS:STRING=native\n" in (BUILD / "CMakeCache.txt").read_text() and "avx512" in TIERS:
    TIERS = [cap for cap in TIERS if "avx2" not in cap]
# Sizes at which products are wide and deep enough to be cut.
LARGE = dict(heads=4, kv_heads=2, size=32, context=CONTEXT)
CHUNKS = {"whole": {}, "cut": {"max_stall_ms": 1}}


def config(**parameters):
    return "\n".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}'
                     for key, value in parameters.items())


def models():
    yield "concat", decoders.make("concat", **LARGE), {}
    yield "gqa_window", decoders.make("gqa", window=40, **LARGE), {}
    yield "alibi", decoders.make("alibi", **LARGE), {}
    yield "range", decoders.make("range", **(LARGE | {"kv_heads": 4})), {}
    for form in FORMS:
        yield form, narrow(decoders.make("gqa", **LARGE), form), {}
    yield "bytes", decoders.make("gqa", **LARGE), {"precision": "int8"}
    yield "bytes_by_block", decoders.make("gqa", **LARGE), {"precision": "int8", "weights": "int4"}
    yield "bf16", decoders.make("gqa", **LARGE), {"precision": "bf16"}
    for precision in ("bf16", "int8"):
        for form in ("int8", "blocks"):
            yield f"{precision}_{form}", narrow(decoders.make("gqa", **LARGE), form), {"precision": precision}
    yield "int8_pages", decoders.make("gqa", **LARGE), {"cache_dtype": "int8"}


def write(root):
    names = []
    for name, model, parameters in models():
        for chunk, more in CHUNKS.items():
            folder = root / f"{name}_{chunk}" / "1"
            folder.mkdir(parents=True)
            (folder / "model.onnx").write_bytes(model.SerializeToString())
            (folder.parent / "config.pbtxt").write_text(config(context=CONTEXT, **parameters, **more))
        names.append(name)
    return names


def prompts(rng):
    """Some of them begin alike."""
    shared = [int(one) for one in rng.integers(0, 97, 48)]
    lengths = [1, 2, 3, 15, 16, 17, 31, 33, 47, 64, 65, 90, 111, 130]
    return [shared[:min(length, 48)] * (length % 2) + [int(one) for one in rng.integers(0, 97, length)]
            for length in lengths]


def ask(daemon, name, ids, **more):
    wanted = dict(max_tokens=10, temperature=1.1, top_p=0.95, seed=11, logprobs=2) | more
    answer = generate(daemon, name, ids, **wanted)
    assert "error" not in answer, answer
    return answer["token_ids"], answer["logprobs"], answer["top_logprobs"]


def differing(daemon, name, rng):
    """Returns how many answers differ from answers to single requests, by the way in which they were asked."""
    asked = prompts(rng)
    alone = [ask(daemon, f"{name}_whole", ids, cache_salt=f"alone {i}") for i, ids in enumerate(asked)]
    wrong = {}

    def compare(way, answers):
        wrong[way] = sum(answer != one for answer, one in zip(answers, alone))
    compare("first", [ask(daemon, f"{name}_whole", ids) for ids in asked])
    compare("again", [ask(daemon, f"{name}_whole", ids) for ids in asked])
    compare("cut", [ask(daemon, f"{name}_cut", ids, cache_salt=f"cut {i}") for i, ids in enumerate(asked)])
    compare("longer", [tuple(part[:10] for part in ask(daemon, f"{name}_whole", ids, max_tokens=14)) for ids in asked])
    for way, salts in (("crowd", True), ("crowd of found pages", False)):
        for model in (f"{name}_whole", f"{name}_cut"):
            with concurrent.futures.ThreadPoolExecutor(2 * len(asked)) as pool:
                others = [pool.submit(generate, daemon, model, [int(one) for one in rng.integers(0, 97, length)],
                                      max_tokens=40) for length in rng.integers(1, 140, len(asked))]
                answers = list(pool.map(lambda one: ask(
                    daemon, model, one[1], **({"cache_salt": f"{way} {one[0]}"} if salts else {})), enumerate(asked)))
                for other in others:
                    other.result()
            compare(f"{way}, {model}", answers)
    return {way: count for way, count in wrong.items() if count}


@pytest.mark.parametrize("isa", TIERS)
def test_equal_requests_get_equal_bits(tmp_path, isa):
    names = write(tmp_path)
    with Daemon(tmp_path, "--max-isa", isa) as daemon:
        wrong = {name: differing(daemon, name, np.random.default_rng(5)) for name in names}
    assert not any(wrong.values()), wrong


@pytest.mark.parametrize("provider", ["own", "openblas"])
def test_whoever_multiplies_the_bits_are_equal(tmp_path, provider):
    names = write(tmp_path)[:1]
    with Daemon(tmp_path, "--gemm-provider", provider) as daemon:
        wrong = {name: differing(daemon, name, np.random.default_rng(6)) for name in names}
    assert not any(wrong.values()), wrong


@pytest.mark.parametrize("isa", TIERS)
@pytest.mark.parametrize("form", ["t5", "bart"])
def test_answers_behind_an_encoder_are_equal_too(tmp_path, form, isa):
    encoder_decoders.EncoderDecoder(form).write(tmp_path / form / "1")
    (tmp_path / form / "1" / "config.json").write_text('{"decoder_start_token_id": 0}')
    rng = np.random.default_rng(3)
    asked = [[int(one) for one in rng.integers(1, 97, length)] for length in (1, 5, 16, 33, 60, 100)]
    with Daemon(tmp_path, "--max-isa", isa) as daemon:
        alone = [ask(daemon, form, ids) for ids in asked]
        for _ in range(3):
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                assert list(pool.map(lambda ids: ask(daemon, form, ids), [*asked, *asked])) == [*alone, *alone]
