"""Exports small decoders of random weights by one of torch's exporters or by optimum."""

import argparse
import pathlib
import warnings

import torch
import transformers

from families import all_configs

warnings.filterwarnings("ignore")

VOCABULARY, ROWS, PAST, NEW = 97, 2, 5, 3
# They count positions themselves.
WITHOUT_POSITIONS = {"bloom", "mpt", "opt"}


def model_of(config, dtype):
    torch.manual_seed(3)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config).eval().float()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.data.normal_(0, 0.15)
    return model.half() if dtype == "fp16" else model


def flat(cache):
    """Returns the keys and values of a cache, layer by layer."""
    if hasattr(cache, "layers"):
        return [one for layer in cache.layers for one in (layer.keys, layer.values)]
    if hasattr(cache, "key_cache"):
        return [one for pair in zip(cache.key_cache, cache.value_cache) for one in pair]
    return [one for layer in cache for one in (layer if isinstance(layer, (tuple, list)) else [layer])]


def cache_of(tensors, each):
    layers = tuple(tuple(tensors[i:i + each]) if each > 1 else tensors[i] for i in range(0, len(tensors), each))
    cache = getattr(transformers, "DynamicCache", None)
    if each == 1 or not hasattr(cache, "layers") and not hasattr(cache, "from_legacy_cache"):
        return layers
    # The older transformers have the class, and families that take tuples alone.
    if transformers.__version__ < "4.40":
        return layers
    return cache.from_legacy_cache(layers) if hasattr(cache, "from_legacy_cache") else cache(list(layers))


class Step(torch.nn.Module):
    """A decoder whose inputs and outputs are tensors alone."""

    def __init__(self, model, each, positions):
        super().__init__()
        self.model, self.each, self.positions = model, each, positions

    def forward(self, input_ids, attention_mask, *rest):
        options = {"position_ids": rest[0]} if self.positions else {}
        past = list(rest[1:] if self.positions else rest)
        answer = self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=True,
                            past_key_values=cache_of(past, self.each), **options)
        return (answer.logits, *flat(answer.past_key_values))


class StepOfList(Step):
    """The same with the past as one list, whose dims torch.export names at once."""

    def forward(self, input_ids, attention_mask, *rest):
        past = list(rest[-1])
        return super().forward(input_ids, attention_mask, *rest[:-1], *past)


def by_torch(name, config, dtype, folder, dynamo):
    model = model_of(config, dtype)
    ids = torch.randint(0, VOCABULARY, (ROWS, PAST + NEW))
    with torch.no_grad():
        past = flat(model(input_ids=ids[:, :PAST], use_cache=True).past_key_values)
    each = len(past) // config.num_hidden_layers
    parts = ["key", "value"] if each == 2 else ["key_value"]
    caches = [f"past_key_values.{i}.{part}" for i in range(config.num_hidden_layers) for part in parts]
    positions = name not in WITHOUT_POSITIONS and (dynamo or transformers.__version__ >= "4.40")
    inputs = {"input_ids": ids[:, PAST:], "attention_mask": torch.ones(ROWS, PAST + NEW, dtype=torch.long)}
    if positions:
        inputs["position_ids"] = torch.arange(PAST, PAST + NEW)[None].repeat(ROWS, 1)
    outputs = ["logits"] + [one.replace("past_key_values", "present") for one in caches]
    path = folder / "model.onnx"
    with torch.no_grad():
        if dynamo:
            free = torch.export.Dim.DYNAMIC
            shapes = [{0: free, 1: free} for _ in inputs] + [[{0: free, 2: free} for _ in past]]
            step = StepOfList(model, each, positions).eval()
            program = torch.onnx.export(step, (*inputs.values(), list(past)), dynamic_shapes={
                "input_ids": shapes[0], "attention_mask": shapes[1], "rest": tuple(shapes[2:])},
                input_names=[*inputs, *caches], output_names=outputs, dynamo=True, verbose=False)
            program.save(str(path))
            return
        axes = {one: {0: "batch", 1: "total" if one == "attention_mask" else "sequence"} for one in [*inputs, "logits"]}
        for cache, tensor in zip(caches, past):
            dims = {i: "past" for i, size in enumerate(tensor.shape) if size == PAST}
            axes[cache] = {0: "batch" if tensor.shape[0] == ROWS else "batch_x_heads", **dims}
            axes[cache.replace("past_key_values", "present")] = {
                i: "past_total" if symbol == "past" else symbol for i, symbol in axes[cache].items()}
        newer = {} if torch.__version__.startswith("1.") else {"dynamo": False}
        torch.onnx.export(Step(model, each, positions).eval(), (*inputs.values(), *past), str(path),
                          input_names=[*inputs, *caches], output_names=outputs, dynamic_axes=axes, opset_version=17,
                          **newer)


def by_optimum(name, config, dtype, folder, legacy):
    from optimum.exporters.onnx import main_export
    source = folder.parent / "source" / name
    model_of(config, "fp32").save_pretrained(source)
    options = {"legacy": True} if legacy else {}
    if dtype == "fp16":
        options["dtype"] = "fp16"
    main_export(str(source), output=str(folder), task="text-generation-with-past", do_validation=False, device="cpu",
                **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exporter", choices=("script", "dynamo", "optimum"))
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--dtype", choices=("fp32", "fp16"), default="fp32")
    parser.add_argument("--legacy", action="store_true", help="optimum: files for prompts and for steps, and merged ones")
    arguments = parser.parse_args()
    for name, config in all_configs().items():
        if arguments.families and name not in arguments.families:
            continue
        folder = arguments.out / f"{name}.{arguments.dtype}"
        folder.mkdir(parents=True, exist_ok=True)
        try:
            if arguments.exporter == "optimum":
                by_optimum(name, config, arguments.dtype, folder, arguments.legacy)
            else:
                by_torch(name, config, arguments.dtype, folder, arguments.exporter == "dynamo")
            print(name, "exported", flush=True)
        except Exception as error:  # One family that an exporter does not take leaves the others.
            print(name, "not exported:", type(error).__name__, str(error)[:200].replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
