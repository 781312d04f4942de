"""Modules of a sentence transformer, as its folders have them, and their effect on vectors.

A folder is written by `write_modules`, and `run_modules` answers as sentence-transformers would.
"""

import json
import math

import numpy as np

from testing.hub import HIDDEN, write_safetensors

POOL = {
    "cls": lambda x: x[0],
    "max": lambda x: x.max(0),
    "mean": lambda x: x.mean(0),
    "mean_sqrt_len_tokens": lambda x: x.sum(0) / np.sqrt(len(x)),
    "weightedmean": lambda x: (x * np.arange(1, len(x) + 1)[:, None]).sum(0) / (len(x) * (len(x) + 1) / 2),
    "lasttoken": lambda x: x[-1],
}
ACTIVATIONS = {
    "torch.nn.modules.linear.Identity": lambda x: x,
    "torch.nn.modules.activation.Tanh": np.tanh,
    "torch.nn.modules.activation.ReLU": lambda x: np.maximum(x, 0),
    "torch.nn.modules.activation.GELU":
        lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "torch.nn.modules.activation.Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


class Pooling:
    def __init__(self, mode="mean", width=HIDDEN):
        self.modes = mode if isinstance(mode, list) else [mode]
        self.config = {"embedding_dimension": width, "pooling_mode": mode, "include_prompt": True}
        self.weights = {}

    def __call__(self, vectors):
        tokens = vectors["token_embeddings"]
        vectors["sentence_embedding"] = np.concatenate([POOL[mode](tokens) for mode in self.modes])


class Dense:
    def __init__(self, width, height, activation="torch.nn.modules.activation.Tanh", bias=True,
                 seed=1, reads="sentence_embedding", writes=None, residual=False):
        rng = np.random.default_rng(seed)
        self.config = {"in_features": width, "out_features": height, "bias": bias,
                       "activation_function": activation, "module_input_name": reads,
                       "module_output_name": writes or reads, "use_residual": residual}
        self.weights = {"linear.weight": rng.normal(0, 0.3, (height, width)).astype(np.float32)}
        if bias:
            self.weights["linear.bias"] = rng.normal(0, 0.3, height).astype(np.float32)
        if residual and width != height:
            self.weights["residual.weight"] = rng.normal(0, 0.3, (height, width)).astype(np.float32)

    def __call__(self, vectors):
        x = vectors[self.config["module_input_name"]]
        y = x @ self.weights["linear.weight"].T + self.weights.get("linear.bias", 0)
        y = ACTIVATIONS[self.config["activation_function"]](y)
        if self.config["use_residual"]:
            residual = self.weights.get("residual.weight")
            y = y + (x if residual is None else x @ residual.T)
        vectors[self.config["module_output_name"]] = y


class Normalize:
    def __init__(self, reads="sentence_embedding", writes=None):
        self.config = {"module_input_name": reads, "module_output_name": writes or reads}
        self.weights = {}

    def __call__(self, vectors):
        x = vectors[self.config["module_input_name"]]
        vectors[self.config["module_output_name"]] = x / np.linalg.norm(x, axis=-1, keepdims=True)


class LayerNorm:
    def __init__(self, width, seed=2):
        rng = np.random.default_rng(seed)
        self.config = {"dimension": width}
        self.weights = {"norm.weight": rng.normal(1, 0.3, width).astype(np.float32),
                        "norm.bias": rng.normal(0, 0.3, width).astype(np.float32)}

    def __call__(self, vectors):
        x = vectors["sentence_embedding"]
        x = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
        vectors["sentence_embedding"] = x * self.weights["norm.weight"] + self.weights["norm.bias"]


def write_modules(folder, modules, transformer=None, **config):
    """Writes modules.json and the modules it names, as sentence-transformers 6 saves them; `config` is
    config_sentence_transformers.json, `transformer` members of sentence_bert_config.json."""
    scores = config.get("model_type") == "CrossEncoder" and not modules
    task, output, name = (("sequence-classification", "logits", "scores") if scores else
                          ("feature-extraction", "last_hidden_state", "token_embeddings"))
    folder.write("sentence_bert_config.json", {
        "transformer_task": task, "module_output_name": name,
        "modality_config": {"text": {"method": "forward", "method_output_name": output}},
        **(transformer or {})})
    folder.write("config_sentence_transformers.json", {
        "model_type": "SentenceTransformer", "__version__": {"sentence_transformers": "6.2.0"},
        "prompts": {"query": "", "document": ""}, "default_prompt_name": None, **config})
    listed = [("", "sentence_transformers.base.modules.transformer.Transformer")]
    for i, module in enumerate(modules, 1):
        kind = type(module).__name__
        path = f"{i}_{kind}"
        folder.write(f"{path}/config.json", module.config)
        if module.weights:
            write_safetensors(folder.path / path / "model.safetensors", module.weights)
        listed.append((path, f"sentence_transformers.sentence_transformer.modules.{kind}"))
    (folder.path / "modules.json").write_text(json.dumps(
        [{"idx": i, "name": str(i), "path": path, "type": kind}
         for i, (path, kind) in enumerate(listed)]))
    return folder


def run_modules(folder, modules, text, pair=None, answers="sentence_embedding"):
    vectors = {"token_embeddings": folder.run(text, pair)[0]}
    for module in modules:
        module(vectors)
    return vectors[answers]
