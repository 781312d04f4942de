"""`reprise check` needs no server, and says the same as a server would."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

import onnx
import pytest
from onnx import TensorProto, helper

from testing import decoders, models
from testing.daemon import BUILD, Daemon, reprise
from testing.repository import MINILM


def check(path, *flags):
    return reprise("check", path, *flags, check=False)


def many_reasons():
    """Makes an unknown op, one of another domain, one over a dtype that it does not take, a string."""
    g = models.Graph(17)
    g.nodes += [
        helper.make_node("Erf", ["ids"], ["e"], name="integer_erf"),
        helper.make_node("Frobnicate", ["e"], ["f"], name="the_odd_one", domain="com.example"),
        helper.make_node("StringNormalizer", ["text"], ["y"], name="the_branch"),
    ]
    model = g.model([("ids", TensorProto.INT64, ["batch", "sequence"]),
                     ("text", TensorProto.STRING, ["batch"]),
                     ("waves", TensorProto.COMPLEX64, ["batch"])],
                    [("y", TensorProto.FLOAT, ["batch"])])
    model.opset_import.append(helper.make_opsetid("com.example", 3))
    return model


def test_a_model_that_can_be_served_is_described():
    done = check(MINILM)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "input input_ids" in text and "output last_hidden_state" in text
    axes = [line for line in text.splitlines() if "certified" in line]
    assert any(line.startswith("batch") for line in axes)
    assert any(line.startswith("sequence") for line in axes)
    assert "must be filled" not in text  # whatever padding holds
    # As a server serves it: packed, in numbers of tokens.
    assert "requests are packed" in text and "16,32,64,128,256,512,1024,2048,4096" in text
    assert "gemm" in text and " 0 reference" in text
    for bucket in ("t16 ", "t512 ", "t4096 "):
        assert bucket in text
    assert "b1_s16" not in text
    assert "weights 2" in text and "MiB as stored" in text  # 22 MB of int8
    assert done.stderr == ""


def test_buckets_are_shown_where_requests_are_padded():
    text = check(MINILM, "--packing", "off").stdout
    assert "packed" not in text and "16,32,64,128,256,512" in text
    for bucket in ("b1_s16", "b1_s512", "b8_s128", "b32_s128"):
        assert bucket in text


def test_buckets_can_be_chosen():
    text = check(MINILM, "--buckets", "batch=1,3", "--buckets", "sequence=24").stdout
    assert "b1_s24" in text and "b3_s24" in text and "s16" not in text


def test_every_reason_is_the_same_in_check_index_and_log(repository):
    path = repository.add("refused", many_reasons())
    done = check(path)
    assert done.returncode == 1
    heading, *reasons = done.stdout.splitlines()
    assert heading == f"{path} cannot be served:"
    reasons = [reason.strip() for reason in reasons]
    assert len(reasons) == 4
    assert "op 'Erf' (domain 'ai.onnx', version 17, node 'integer_erf', dtypes (i64))" in "".join(
        reasons)
    assert "op 'Frobnicate' (domain 'com.example', version 3, node 'the_odd_one'" in "".join(
        reasons)
    assert "'the_branch'" in "".join(reasons) and "dtype complex64" in "".join(reasons)
    assert "for 4 reasons" in done.stderr and len(done.stderr.splitlines()) == 1
    with Daemon(repository) as daemon:
        (entry,) = daemon.client().get_model_repository_index().models
        assert entry.state == "UNAVAILABLE"
        assert entry.reason == "; ".join(reasons)
        assert entry.reason in daemon.log()


def test_a_newer_opset_is_told_beside_the_ops_that_are_lacking(tmp_path):
    model = many_reasons()
    model.opset_import[0].version = 99
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    text = check(path).stdout
    assert "opset 99 is newer than 28" in text
    assert "'the_odd_one'" in text and "'the_branch'" in text and "'integer_erf'" in text


@pytest.mark.parametrize("content,word", [(b"", "empty"), (b"no model", "not an ONNX file"), (None, "")])
def test_a_file_that_is_no_model_is_refused_in_words(tmp_path, content, word):
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    done = check(path)
    assert done.returncode == 1
    assert word in done.stdout and str(path) in done.stderr


def test_wrong_usage_is_exit_2():
    assert check(MINILM, "--buckets", "sequence").returncode == 2
    assert check(MINILM, "--buckets", "sequence=a").returncode == 2
    assert check(MINILM, "--max-isa", "sse9").returncode == 2
    done = check(MINILM, "--max-isa")
    assert done.returncode == 2
    assert "--max-isa needs a value, ISA:{baseline,avx2,avx2_vnni,avx512," in done.stderr


def test_an_older_opset_without_axes_is_checked(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(models.no_batch_axis(), path)
    done = check(path)
    assert done.returncode == 0 and "no axis" in done.stdout


def on_a_terminal(columns, *arguments):
    """Returns the lines that the program shows there."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with subprocess.Popen([BUILD / "reprise", *arguments], stdin=subprocess.DEVNULL, stdout=theirs,
                          stderr=subprocess.PIPE) as process:
        os.close(theirs)
        shown = b""
        try:
            while some := os.read(ours, 1 << 16):
                shown += some
        except OSError:
            pass  # the other end is closed
        os.close(ours)
        assert process.wait(120) == 0, process.stderr.read()
    return shown.decode().replace("\r", "").splitlines()


@pytest.mark.parametrize("columns", [80, 100])
def test_lines_are_within_the_terminal(columns, tmp_path):
    decoder, refused = tmp_path / "decoder.onnx", tmp_path / "padding.onnx"
    decoder.write_bytes(decoders.make("gqa").SerializeToString())
    refused.write_bytes(models.elementwise_of_three_axes().SerializeToString())
    for model in (MINILM, decoder, refused):
        lines = on_a_terminal(columns, "check", model)
        # Paths are left whole, to be copied.
        assert [line for line in lines if len(line) > columns and str(model) not in line] == []
        assert len(lines) > 10


def test_tensors_of_all_layers_share_a_row(tmp_path):
    path = tmp_path / "decoder.onnx"
    path.write_bytes(decoders.make("gqa").SerializeToString())
    caches = [line for line in check(path).stdout.splitlines() if line.startswith("input past_key_values")]
    inputs = [one.name for one in onnx.load(path).graph.input if "past_key_values" in one.name]
    assert len(inputs) > len(caches) >= 1, caches
    more = sum(int(line.split("and ")[1].split(" ")[0]) for line in caches if "more of this kind" in line)
    assert len(caches) + more == len(inputs)


def test_a_decoder_begins_with_its_pages_and_stays_short(tmp_path):
    path = tmp_path / "decoder.onnx"
    path.write_bytes(decoders.make("gqa").SerializeToString())
    lines = on_a_terminal(80, "check", path)
    end = lines.index("")  # of the verdict
    assert "can be served" in " ".join(line.strip() for line in lines[:end]) and lines[end + 1].startswith("makes tokens: ")
    axes = next(i for i, line in enumerate(lines) if line.startswith("requests of tensors"))
    assert axes > next(i for i, line in enumerate(lines) if line.startswith("output logits"))
    assert len(lines) < 120 and "one axis varies" in " ".join(line.strip() for line in lines)


def test_answers_of_a_server_are_within_the_terminal(repository):
    repository.add("minilm", MINILM)
    repository.add("decoder", decoders.make("gqa"))
    with Daemon(repository) as daemon:
        daemon.reprise("infer", "minilm", "--length", "40")
        daemon.reprise("infer", "minilm", "--length", "4", "--batch", "3")
        at = ["--server", daemon.grpc_address]
        keys = [one["key"] for one in json.loads(daemon.reprise("recipes", "--json"))["recipes"]]
        assert keys
        for columns in (60, 80, 120):
            for command in (["recipes"], ["explain", "minilm"], ["explain", "decoder"], ["ps"], ["models"], ["stats"],
                            ["metadata", "decoder"], ["infer", "minilm"]):
                lines = on_a_terminal(columns, *command, *at)
                assert [line for line in lines if len(line) > columns] == [], command
                if command == ["recipes"]:  # to be copied
                    assert set(keys) <= {line.split(" ")[0] for line in lines}
                if command[1:] == ["decoder"]:
                    assert not [line for line in lines if "past_key_values.1." in line], command
