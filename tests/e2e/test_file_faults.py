"""Files of a model that change, shrink or are no files: the model is refused, the daemon goes on."""

import os
import time

import numpy as np
import pytest
import requests
from onnx import TensorProto, helper, numpy_helper
from tritonclient.utils import InferenceServerException

from testing import models
from testing.daemon import Daemon
from testing.inference import infer
from testing.metrics import Scrape

ROWS, WIDTH = 200_000, 8


def lookup():
    """Rows of a table that is read where the file lies: y = table[ids]."""
    table = np.arange(ROWS * WIDTH, dtype=np.float32).reshape(ROWS, WIDTH)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["y"])], "g",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "sequence"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(table, "table")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def external(**data):
    """y = x + the sum of 300 floats in a file beside the model."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[300],
                         data_location=TensorProto.EXTERNAL)
    for key, value in data.items():
        tensor.external_data.add(key=key, value=str(value))
    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["w"], ["s"]), helper.make_node("Add", ["x", "s"], ["y"])],
        "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def serves(daemon):
    ones = np.ones((2, 5), np.float32)
    return (infer(daemon.client(), "elementwise", {"x": ones}).outputs["y"] == 3).all()


def cut(path):
    os.truncate(path, 4096)


def overwrite(path):
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("change", [cut, overwrite])
def test_file_that_changes_where_it_lies_fails_its_model_alone(repository, change):
    repository.add("lookup", lookup())
    repository.add("elementwise", models.elementwise())
    path = repository.path("lookup")
    ids = np.array([[ROWS - 1, 3]], np.int64)
    with Daemon(repository) as daemon:
        client = daemon.client()
        y = infer(client, "lookup", {"ids": ids}).outputs["y"]
        assert y[0, 0, 0] == (ROWS - 1) * WIDTH
        change(path)
        # Changes are looked for every 10 ms.
        for _ in range(200):
            try:
                infer(client, "lookup", {"ids": ids})
            except InferenceServerException as error:
                assert error.status() == "StatusCode.UNAVAILABLE"
                assert "was changed in place" in error.message()
                break
        else:
            pytest.fail("a changed file is served")
        with pytest.raises(InferenceServerException):
            infer(client, "lookup", {"ids": ids})
        assert serves(daemon)


def test_model_whose_file_was_cut_is_not_ready_until_it_is_loaded_again(repository):
    repository.add("lookup", lookup())
    repository.add("elementwise", models.elementwise())
    path = repository.path("lookup")
    whole = path.read_bytes()
    with Daemon(repository, "--model-control-mode", "explicit", "--load-model", "*") as daemon:
        client = daemon.client()

        def ready():
            page = requests.get(f"{daemon.http_url}/v2/models/lookup/ready", timeout=60)
            index = {model["name"]: model["state"] for model in requests.post(
                f"{daemon.http_url}/v2/repository/index", timeout=60).json()}
            gauge = Scrape(daemon.metrics_url).total("reprise_model_ready", model="lookup")
            said = [client.is_model_ready("lookup"), page.status_code == 200,
                    index["lookup"] == "READY", gauge == 1]
            assert len(set(said)) == 1, said
            return said[0]

        assert ready()
        cut(path)
        assert not ready()
        assert client.is_model_ready("elementwise") and serves(daemon)
        assert client.is_server_live() and not client.is_server_ready()
        new = path.with_suffix(".new")
        new.write_bytes(whole)
        new.rename(path)
        client.load_model("lookup")
        assert ready() and client.is_server_ready()


def test_file_of_which_only_the_time_is_another_goes_on(repository):
    repository.add("lookup", lookup())
    path = repository.path("lookup")
    ids = np.array([[ROWS - 1, 3]], np.int64)
    with Daemon(repository) as daemon:
        client = daemon.client()
        before = infer(client, "lookup", {"ids": ids}).outputs["y"]
        for seconds in (1, 2):
            os.utime(path, (seconds, seconds))
            time.sleep(0.05)
            for _ in range(3):
                assert (infer(client, "lookup", {"ids": ids}).outputs["y"] == before).all()
        overwrite(path)
        time.sleep(0.05)
        with pytest.raises(InferenceServerException, match="was changed in place"):
            for _ in range(3):
                infer(client, "lookup", {"ids": ids})


def test_file_that_is_replaced_by_another_goes_on_as_it_was_loaded(repository):
    repository.add("lookup", lookup())
    path = repository.path("lookup")
    ids = np.array([[ROWS - 1, 3]], np.int64)
    with Daemon(repository) as daemon:
        client = daemon.client()
        before = infer(client, "lookup", {"ids": ids}).outputs["y"]
        other = path.with_name("other")
        other.write_bytes(b"no model")
        other.rename(path)
        for _ in range(30):
            assert (infer(client, "lookup", {"ids": ids}).outputs["y"] == before).all()


def test_what_is_no_file_of_a_model_is_refused_by_name(repository):
    repository.add("elementwise", models.elementwise())
    sizes = {"offset": 0, "length": 1200}
    bad = {
        "behind_the_end": ({"offset": 4, "length": 1200}, None),
        "far_behind": ({"offset": 2**63 - 1, "length": 2**63 - 1}, None),
        "pipe": (sizes, os.mkfifo),
        "folder": (sizes, os.mkdir),
        "device": (sizes, lambda path: os.symlink("/dev/zero", path)),
        "empty": (sizes, lambda path: path.touch()),
    }
    for name, (data, make) in bad.items():
        repository.add(name, external(location="w.bin", **data))
        file = repository.path(name).with_name("w.bin")
        if make is None:
            file.write_bytes(np.ones(300, np.float32).tobytes())
        else:
            make(file)
    repository.add("model_is_a_pipe", models.elementwise())
    model = repository.path("model_is_a_pipe")
    model.unlink()
    os.mkfifo(model)
    for name in ["config_is_a_pipe", "config_is_large"]:
        repository.add(name, models.elementwise())
    os.mkfifo(repository.root / "config_is_a_pipe" / "config.pbtxt")
    with open(repository.root / "config_is_large" / "config.pbtxt", "wb") as config:
        config.write(b"# \n" * (20 << 20))
    with Daemon(repository) as daemon:
        index = {model.name: model for model in daemon.client().get_model_repository_index().models}
        for name in [*bad, "model_is_a_pipe", "config_is_a_pipe", "config_is_large"]:
            assert index[name].state == "UNAVAILABLE" and index[name].reason, name
        assert serves(daemon)
