"""Cases of attention: onnxruntime's contributed ops, ONNX's own, and rotary positions."""

import numpy as np

from draws import MICROSOFT, caches, f32, ints, lengths_mask


def causal_cases():
    """`unidirectional` with masks: later keys get the lowest float in the place of the mask's value."""
    random = np.random.default_rng(55)
    x, w, b = (random.standard_normal(shape).astype(np.float32) for shape in ((2, 5, 12), (12, 36), (36,)))
    cache = [random.standard_normal((2, 3, 3, 4)).astype(np.float32) for _ in range(2)]
    lowest = float(np.finfo(np.float32).min)
    # By default a mask adds -10000, beside which scores are too coarse to compare several hidden keys.
    yield "attention_causal_left_padded", MICROSOFT, "Attention", [
        x, w, b, np.array([[0, 1, 1, 1, 1], [1, 1, 1, 0, 1]], np.int32)], {
            "num_heads": 3, "unidirectional": 1}, ["y"]
    for value, filter_value in {"-1e9": -1e9, "lowest": lowest}.items():
        attrs = {"num_heads": 3, "unidirectional": 1, "mask_filter_value": filter_value}
        keys = {"lengths": np.array([0, 3], np.int32), "beyond": np.array([9, 1], np.int32),
                "ends_starts": np.array([5, 4, 2, 4], np.int32),
                "raw": np.array([[0, 0, 1, 1, 1], [0, 2, -1, 0, 0]], np.int32),
                "square": random.integers(0, 2, (2, 5, 5)).astype(np.int32),
                "square_zeros": np.zeros((2, 5, 5), np.int32)}
        for name, mask in keys.items():
            yield f"attention_causal_{name}_{value}", MICROSOFT, "Attention", [x, w, b, mask], attrs, ["y"]
        yield f"attention_causal_bias_{value}", MICROSOFT, "Attention", [
            x, w, b, keys["raw"], None, random.standard_normal((2, 3, 5, 5)).astype(np.float32)], attrs, ["y"]
        past = {"lengths": np.array([0, 5], np.int32), "zeros": np.zeros((2, 8), np.int32),
                "raw": np.array([[0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 1, 0, 0, 1]], np.int32),
                "square": random.integers(0, 2, (2, 5, 8)).astype(np.int32)}
        for name, mask in past.items():
            yield f"mha_causal_{name}_{value}", MICROSOFT, "MultiHeadAttention", [
                x, x[:, ::-1].copy(), x, None, mask, None, *cache], attrs, ["y", "key", "value"]


def attention_cases(x):
    w, b = f32(12, 36), f32(36)
    attrs = {"num_heads": 3}
    yield "attention", MICROSOFT, "Attention", [x, w, b], attrs, ["y"]
    masks = {"lengths": np.array([3, 5], np.int32), "raw": lengths_mask(2, 5),
             "ends_starts": np.array([4, 5, 1, 2], np.int32),
             "square": ints(0, 2, (2, 5, 5), np.int32)}
    for name, mask in masks.items():
        yield f"attention_{name}", MICROSOFT, "Attention", [x, w, b, mask], attrs, ["y"]
    yield "attention_bias", MICROSOFT, "Attention", [x, w, b, None, None, f32(1, 3, 5, 5)], attrs, [
        "y"]
    yield "attention_causal", MICROSOFT, "Attention", [x, w, b], {
        **attrs, "unidirectional": 1, "scale": 0.3}, ["y"]
    yield "attention_sizes", MICROSOFT, "Attention", [x, f32(12, 30), f32(30)], {
        **attrs, "qkv_hidden_sizes": [12, 12, 6]}, ["y"]
    q, k, v = f32(2, 4, 12), f32(2, 6, 12), f32(2, 6, 9)
    yield "mha", MICROSOFT, "MultiHeadAttention", [q, k, v], attrs, ["y"]
    yield "mha_bias", MICROSOFT, "MultiHeadAttention", [q, k, v, f32(33)], attrs, ["y"]
    yield "mha_mask", MICROSOFT, "MultiHeadAttention", [q, k, v, None, lengths_mask(2, 6)], attrs, [
        "y"]
    yield "mha_attention_bias", MICROSOFT, "MultiHeadAttention", [
        q, k, v, None, None, f32(2, 3, 4, 6)], attrs, ["y"]
    yield "mha_heads", MICROSOFT, "MultiHeadAttention", [q, f32(2, 3, 6, 4), f32(2, 3, 6, 4)], \
        attrs, ["y"]
    cache = [f32(2, 3, 5, 4), f32(2, 3, 5, 4)]
    yield "mha_past", MICROSOFT, "MultiHeadAttention", [
        q, k, f32(2, 6, 12), f32(36), None, None, *cache], attrs, ["y", "key", "value"]
    yield "mha_past_causal", MICROSOFT, "MultiHeadAttention", [
        q, f32(2, 4, 12), f32(2, 4, 12), None, None, f32(1, 1, 4, 9), *cache], {
            **attrs, "unidirectional": 1, "scale": 0.4}, ["y", "key", "value"]
    yield "mha_past_mask", MICROSOFT, "MultiHeadAttention", [
        q, k, f32(2, 6, 12), None, lengths_mask(2, 11), None, *cache], attrs, [
            "y", "key", "value"]
    yield from causal_cases()
    yield from group_query_cases()
    heads = [f32(2, 4, 3, 8), f32(2, 2, 6, 8), f32(2, 2, 6, 5)]
    yield "onnx_attention", "", "Attention", heads, {}, ["y"]
    yield "onnx_attention_mask", "", "Attention", heads + [f32(3, 6)], {"scale": 0.2}, ["y"]
    yield "onnx_attention_bool", "", "Attention", heads + [ints(0, 2, (2, 1, 3, 6)) > 0 | (
        np.arange(6) == 0)], {}, ["y"]
    past = [f32(2, 2, 4, 8), f32(2, 2, 4, 5)]
    yield "onnx_attention_past", "", "Attention", heads + [None] + past, {}, [
        "y", "key", "value"]
    yield "onnx_attention_past_causal", "", "Attention", heads + [f32(3, 10)] + past, {
        "is_causal": 1}, ["y", "key", "value"]
    yield "onnx_attention_softcap", "", "Attention", heads, {"softcap": 2.0}, ["y"]
    yield "onnx_attention_scores", "", "Attention", heads + [f32(3, 6)], {
        "qk_matmul_output_mode": 3}, ["y", "", "", "scores"]
    yield "onnx_attention_3d", "", "Attention", [f32(2, 3, 8), f32(2, 6, 4), f32(2, 6, 6)], {
        "q_num_heads": 4, "kv_num_heads": 2}, ["y"]
    yield "onnx_attention_causal", "", "Attention", [f32(2, 2, 5, 4)] * 3, {"is_causal": 1}, ["y"]
    cosine, sine = caches(9, 4)
    ids = ints(0, 9, (2, 3))
    for interleaved in (0, 1):
        rotary = {"interleaved": interleaved}
        yield f"rotary_{interleaved}", "", "RotaryEmbedding", [
            f32(2, 4, 3, 8), cosine, sine, ids], rotary, ["y"]
        yield f"microsoft_rotary_{interleaved}", MICROSOFT, "RotaryEmbedding", [
            f32(2, 3, 16), ids, cosine, sine], rotary, ["y"]
    yield "rotary_caches", "", "RotaryEmbedding", [f32(2, 3, 16), f32(2, 3, 4), f32(2, 3, 4)], {
        "num_heads": 2}, ["y"]
    yield "rotary_partial", "", "RotaryEmbedding", [
        f32(2, 4, 3, 10), cosine, sine, ids], {"rotary_embedding_dim": 8}, ["y"]
    yield "microsoft_rotary_offset", MICROSOFT, "RotaryEmbedding", [
        f32(2, 4, 3, 8), np.array([2], np.int64), cosine, sine], {}, ["y"]


def group_query_cases():
    """Prompts, steps of sequences of one length and of several, and pieces of a prompt after a past."""
    heads, kv_heads, size = 4, 2, 32
    attrs = {"num_heads": heads, "kv_num_heads": kv_heads}
    cosine, sine = caches(20, size // 2)

    def case(name, batch, rows, past, last, total, extra=(), joined=False, **more):
        widths = [heads * size, kv_heads * size, kv_heads * size]
        new = [f32(batch, rows, sum(widths)), None, None] if joined else [
            f32(batch, rows, width) for width in widths]
        cache = [f32(batch, kv_heads, past, size) for _ in range(2)]
        operands = [*new, *cache, np.array(last, np.int32), np.array([total], np.int32), *extra]
        return f"gqa_{name}", MICROSOFT, "GroupQueryAttention", operands, {**attrs, **more}, [
            "y", "key", "value"]

    rotary = {"do_rotary": 1}
    turned = (cosine, sine)
    yield case("prompt", 1, 5, 0, [4], 5)
    yield case("prompts", 2, 5, 0, [4, 4], 5, turned, **rotary)
    yield case("step", 1, 1, 6, [6], 7, turned, **rotary)
    yield case("steps", 2, 1, 6, [6, 3], 7, turned, **rotary)
    yield case("piece", 1, 3, 6, [8], 9, turned, **rotary, rotary_interleaved=1)
    yield case("joined", 2, 1, 6, [[6], [6]], 7, turned, joined=True, **rotary)
    yield case("part", 1, 2, 6, [7], 8, (cosine[:, :8], sine[:, :8]), **rotary)
    yield case("larger_cache", 1, 1, 10, [6], 7, scale=0.2)
    yield case("window", 1, 6, 0, [5], 6, local_window_size=3)
    yield case("window_step", 2, 1, 9, [9, 7], 10, local_window_size=4)
    yield case("softcap", 1, 3, 6, [8], 9, softcap=3.0)
    yield case("added", 1, 3, 6, [8], 9, (None, None, None, f32(1, 4, 3, 9)))
    yield case("positions", 1, 1, 6, [6], 7, (*turned, np.array([[11]], np.int64)), **rotary)
