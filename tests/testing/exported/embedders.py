"""Folders of models that make embeddings of other kinds: weights of words, a vector a token, decoders, CLIP."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from testing import models, tokenizer_kinds
from testing.hub import HIDDEN, Folder
from testing.hub.modules import Dense, Normalize, Pooling, write_modules
from testing.vision import detectors

IDENTITY = "torch.nn.modules.linear.Identity"
PREPROCESSOR = {"image_processor_type": "CLIPImageProcessor", "do_resize": True, "size": {"height": 32, "width": 32},
                "resample": 2, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
                "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.25]}


def masked_model(path, words, **config):
    """Makes a masked language model: scores of each word for each token."""
    folder = Folder(path, labels=[str(i) for i in range(words)], of_tokens=True)
    folder.write("config.json", {"architectures": ["BertForMaskedLM"], "model_type": "bert",
                                 "max_position_embeddings": 128, **config})
    return folder


def splade_modules(folder, pooling=None, **config):
    folder.write("sentence_bert_config.json", {
        "transformer_task": "fill-mask", "module_output_name": "token_embeddings",
        "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}}})
    folder.write("config_sentence_transformers.json", {"model_type": "SparseEncoder", "prompts": {}, **config})
    folder.write("1_SpladePooling/config.json", pooling or {"pooling_strategy": "max", "activation_function": "relu",
                                                            "embedding_dimension": None})
    folder.write("modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"},
        {"idx": 1, "name": "1", "path": "1_SpladePooling",
         "type": "sentence_transformers.sparse_encoder.modules.splade_pooling.SpladePooling"}])
    return folder


def late(path, config, transformer=None, mask=None, marks=()):
    """Makes a model of late interaction, as it is saved by PyLate, or by sentence-transformers with `mask`."""
    tokenizer = tokenizer_kinds.wordpiece(True)
    tokenizer.add_special_tokens(list(marks))
    folder = Folder(path, tokenizer=tokenizer)
    dense = Dense(HIDDEN, 12, IDENTITY, bias=False, reads="token_embeddings")
    write_modules(folder, [dense] if mask is None else [dense, Normalize("token_embeddings")],
                  transformer=transformer, **config)
    listed = json.loads((folder.path / "modules.json").read_text())
    if mask is None:
        listed[1]["type"] = "pylate.models.Dense.Dense"
    else:
        listed.append({"idx": 9, "name": "9", "path": "9_Mask",
                       "type": "sentence_transformers.multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask"})
        folder.write("9_Mask/config.json", mask)
    folder.write("modules.json", listed)
    folder.dense = dense.weights["linear.weight"]
    return folder


def decoder(path, sentence_transformer=True):
    """Makes a decoder with inputs of cached keys and values that answers vectors."""
    folder = Folder(path)
    model = models.cached_decoder(vocabulary=folder.tokenizer.get_vocab_size(), size=8, width=HIDDEN)
    model.graph.node.append(helper.make_node("Identity", ["hidden"], ["last_hidden_state"]))
    del model.graph.output[0]
    model.graph.output.insert(0, helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT,
                                                               ["batch", "sequence", HIDDEN]))
    onnx.checker.check_model(model)
    folder.file.write_bytes(model.SerializeToString())
    folder.write("config.json", {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
                                 "max_position_embeddings": 128})
    if sentence_transformer:
        write_modules(folder, [Pooling("lasttoken"), Normalize()], prompts={"query": "find: ", "document": ""})
    return folder


def clip(path):
    """Writes a folder with the two sides of CLIP: vectors of texts, and of pictures the means of their channels."""
    folder = Folder(path, file="onnx/text_model.onnx")
    model = onnx.load_from_string(folder.file.read_bytes())
    model.graph.initializer.append(numpy_helper.from_array(np.array(0, np.int64), "first"))
    model.graph.node.append(helper.make_node("Gather", ["last_hidden_state", "first"], ["text_embeds"], axis=1))
    model.graph.output.append(helper.make_tensor_value_info("text_embeds", TensorProto.FLOAT, ["batch", HIDDEN]))
    folder.file.write_bytes(model.SerializeToString())
    vision = detectors.classifier()
    for node in vision.graph.node:
        node.output[:] = ["image_embeds" if name == "logits" else name for name in node.output]
    vision.graph.output[0].name = "image_embeds"
    (folder.path / "onnx/vision_model.onnx").write_bytes(vision.SerializeToString())
    folder.write("preprocessor_config.json", PREPROCESSOR)
    return folder


def clip_in_one_file(path):
    """Writes both as one file, as optimum exports CLIP: both vectors, and how alike each text and each picture are."""
    folder = clip(path)
    texts, pictures = (folder.path / f"onnx/{name}_model.onnx" for name in ("text", "vision"))
    model, vision = onnx.load(texts), onnx.compose.add_prefix(onnx.load(pictures), "vision/")
    for node in vision.graph.node:
        node.input[:] = [name.replace("vision/pixel_values", "pixel_values") for name in node.input]
        node.output[:] = [name.replace("vision/image_embeds", "image_embeds") for name in node.output]
    graph = model.graph
    graph.node.extend(vision.graph.node)
    graph.initializer.extend(vision.graph.initializer)
    rng = np.random.default_rng(2)
    graph.initializer.append(numpy_helper.from_array(rng.normal(size=(HIDDEN, 3)).astype(np.float32), "between"))
    graph.node.extend([helper.make_node("Transpose", ["image_embeds"], ["turned"], perm=[1, 0]),
                       helper.make_node("MatMul", ["text_embeds", "between"], ["narrow"]),
                       helper.make_node("MatMul", ["narrow", "turned"], ["logits_per_text"]),
                       helper.make_node("Transpose", ["logits_per_text"], ["logits_per_image"], perm=[1, 0])])
    sides = ["image_batch", "batch"]
    pixels, embeds = vision.graph.input[0], vision.graph.output[0]
    pixels.name, embeds.name = "pixel_values", "image_embeds"
    for value in (pixels, embeds):
        value.type.tensor_type.shape.dim[0].dim_param = sides[0]
    vectors = [one for one in graph.output if one.name == "text_embeds"]
    del graph.output[:]
    graph.input.insert(1, pixels)
    graph.output.extend([helper.make_tensor_value_info("logits_per_image", TensorProto.FLOAT, sides),
                         helper.make_tensor_value_info("logits_per_text", TensorProto.FLOAT, sides[::-1]),
                         *vectors, embeds])
    onnx.checker.check_model(model)
    for file in (texts, pictures):
        file.unlink()
    folder.file = folder.path / "model.onnx"
    folder.file.write_bytes(model.SerializeToString())
    folder.write("config.json", {"architectures": ["CLIPModel"], "model_type": "clip", "max_position_embeddings": 128})
    return folder
