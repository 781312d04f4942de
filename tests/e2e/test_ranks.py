"""Inputs without a declared rank: requests decide it, and each rank is padded and batched as it may be."""

import concurrent.futures

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tritonclient.utils import InferenceServerException

from testing.daemon import Daemon, reprise
from testing.inference import assert_same_answer, infer, reference


def open_value(name):
    """Makes a float32 value whose shape the file leaves open."""
    return helper.make_value_info(name, helper.make_tensor_type_proto(TensorProto.FLOAT, None))


def softmax_model():
    """Softmax over the last dim of an operand of any rank above 0."""
    graph = helper.make_graph(
        [helper.make_node("Softmax", ["x"], ["s"], axis=-1), helper.make_node("Add", ["s", "x"], ["y"])],
        "any", [open_value("x")], [open_value("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def product_model():
    """Makes a product with weights: of any rank above 0."""
    weights = onnx.numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(4, 3) / 10, "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "product",
                              [open_value("x")], [open_value("y")], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("model", [softmax_model, product_model], ids=["softmax", "product"])
def test_each_rank_is_answered(repository, rng, model):
    path = repository.add("any", model())
    with Daemon(repository) as daemon:
        client = daemon.client()
        for shape in [(5, 4), (4,), (2, 3, 4), (7, 4), (2, 1, 3, 4), (3, 3, 4)]:
            inputs = {"x": rng.standard_normal(shape, np.float32)}
            answer = infer(client, "any", inputs)
            assert_same_answer(answer.outputs, reference(path, inputs), f"{shape}")


def test_metadata_states_no_shape(repository):
    repository.add("any", softmax_model())
    with Daemon(repository) as daemon:
        metadata = daemon.client().get_model_metadata("any", as_json=True)
        assert metadata["inputs"] == [{"name": "x", "datatype": "FP32"}]
        assert metadata["outputs"] == [{"name": "y", "datatype": "FP32"}]


def test_rows_of_one_rank_are_batched_and_padded(repository, rng):
    repository.add("any", softmax_model())
    with Daemon(repository) as daemon:
        client = daemon.client()
        x = rng.standard_normal((3, 16), np.float32)
        # Rows are batched; the dim of a softmax without a mask is not padded.
        recipes = {infer(client, "any", {"x": rows}).recipe for rows in (x, x, np.concatenate([x, x[:1]]))}
        assert len(recipes) == 1


def test_a_fifth_rank_is_refused_by_name(repository, rng):
    repository.add("any", softmax_model())
    with Daemon(repository) as daemon:
        client = daemon.client()
        for rank in (1, 2, 3, 4):
            infer(client, "any", {"x": rng.standard_normal((2,) * rank, np.float32)})
        with pytest.raises(InferenceServerException) as refused:
            infer(client, "any", {"x": rng.standard_normal((2,) * 5, np.float32)})
        assert refused.value.status() == "StatusCode.RESOURCE_EXHAUSTED"
        assert 'rank 5 of input "x"' in refused.value.message()
        assert infer(client, "any", {"x": rng.standard_normal((2, 2), np.float32)}).outputs["y"].shape == (2, 2)


def test_a_rank_that_the_model_does_not_take_is_refused(repository, rng):
    repository.add("any", product_model())
    with Daemon(repository) as daemon:
        client = daemon.client()
        for _ in range(2):
            with pytest.raises(InferenceServerException) as refused:
                infer(client, "any", {"x": np.float32(1)})
            assert 'does not take rank 0 of input "x"' in refused.value.message()
        infer(client, "any", {"x": rng.standard_normal((2, 4), np.float32)})


def test_requests_that_come_together_wait_for_one_load(repository, rng):
    path = repository.add("any", softmax_model())
    with Daemon(repository) as daemon:
        client = daemon.client()
        inputs = [{"x": rng.standard_normal((2, 3, 4 + i), np.float32)} for i in range(8)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda one: infer(client, "any", one), inputs))
        for one, answer in zip(inputs, answers):
            assert_same_answer(answer.outputs, reference(path, one), "together")


def test_config_says_the_rank(repository, rng):
    repository.add("any", softmax_model(), config='''
        max_batch_size: 8
        input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
        output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }''')
    with Daemon(repository) as daemon:
        client = daemon.client()
        assert client.get_model_metadata("any", as_json=True)["inputs"][0]["shape"] == ["-1", "-1"]
        infer(client, "any", {"x": rng.standard_normal((2, 4), np.float32)})
        with pytest.raises(InferenceServerException) as refused:
            infer(client, "any", {"x": rng.standard_normal((2, 2, 4), np.float32)})
        assert "rank 3, the model expects rank 2" in refused.value.message()


def test_check_shows_it_at_a_rank(tmp_path):
    path = tmp_path / "any.onnx"
    onnx.save(softmax_model(), path)
    text = reprise("check", path)
    assert "input 'x' has no declared rank, each request decides it: shown at rank 2; --rank shows another" in text
    text = reprise("check", path, "--rank", "x=4")
    assert text.rstrip().endswith("shown at rank 4") and "x:3" in text
    refused = reprise("check", path, "--rank", "x=0", check=False)
    assert refused.returncode == 1 and "rank" in refused.stdout
