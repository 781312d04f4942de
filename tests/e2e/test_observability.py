"""Output of the server besides its answers: metrics as a file, phases, traces, log levels."""

import json
import re
import urllib.error
import urllib.request

import numpy as np
import onnx
import pytest
import tritonclient.http
from onnx import TensorProto, helper

from testing import models
from testing.daemon import Daemon, reprise, run_reprised
from testing.inference import infer, text_inputs
from testing.patience import wait_until
from testing.repository import PADDED

NAMES = ["input_ids", "attention_mask"]


def get(daemon, path, body=None):
    request = urllib.request.Request(daemon.http_url + path, data=body and json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


def read(path):
    return json.loads(path.read_text()) if path.exists() else {}


def test_metrics_are_written_after_captures_every_so_often_and_at_the_end(repository, tmp_path):
    repository.add("elementwise", models.elementwise())
    file = tmp_path / "metrics.json"
    shape = inputs()
    with Daemon(repository, "--metrics-file", str(file), "--metrics-file-on",
                "exit,capture,interval:1s") as daemon:
        answer = infer(daemon.client(), "elementwise", shape)
        wait_until(lambda: any(m["captures"] for m in read(file).get("models", [])))
        capture = read(file)["models"][0]["captures"][0]
        assert capture["recipe"] == answer.recipe and capture["reason"] == "first_request"
        assert {p["name"] for p in capture["phases"]} >= {"specialise", "passes", "bind", "prime"}
        for _ in range(5):
            infer(daemon.client(), "elementwise", shape)
        wait_until(lambda: read(file)["models"][0]["replays"] == 6)
        infer(daemon.client(), "elementwise", shape)
    last = read(file)
    assert last["models"][0]["replays"] == 7 and last["models"][0]["compiles"] == 1
    replays = last["metrics"]["reprise_replays_total"]
    assert replays["kind"] == "counter" and sum(s["value"] for s in replays["series"]) == 7


def inputs():
    return {"x": np.array([[1.5, -2.0]], np.float32)}


def test_compile_statistics_and_cache_hits_come_over_http(repository):
    repository.add("elementwise", models.elementwise())
    with Daemon(repository) as daemon:
        client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{daemon.http_port}")
        for _ in range(4):
            infer(daemon.client(), "elementwise", inputs())
        compilations = get(daemon, "/v2/models/elementwise/compilations")
        assert compilations["compiles"] == 1 and compilations["replays"] == 4
        assert compilations["compiles_by_reason"]["first_request"] == 1
        assert get(daemon, "/v2/models/elementwise/versions/1/compilations")["version"] == "1"
        with pytest.raises(urllib.error.HTTPError):
            get(daemon, "/v2/models/nonsense/compilations")
        stats = client.get_inference_statistics("elementwise")["model_stats"][0]["inference_stats"]
        assert stats["cache_miss"]["count"] == 1 and stats["cache_hit"]["count"] == 3
        assert stats["cache_hit"]["ns"] > 0


def test_commands_print_json(repository, tmp_path):
    repository.add("elementwise", models.elementwise())
    with Daemon(repository) as daemon:
        infer(daemon.client(), "elementwise", inputs())
        for command in (["recipes"], ["stats"], ["explain", "elementwise"], ["dynamicity"],
                        ["warmup", "elementwise"]):
            assert json.loads(daemon.reprise(*command, "--json")), command
        answer = json.loads(daemon.reprise("infer", "elementwise", "--json"))["answers"][0]
        assert len(answer["outputs"][0]["data"]) == np.prod(answer["outputs"][0]["shape"])
        file = tmp_path / "metrics.json"
        load = json.loads(daemon.reprise("bench", "elementwise", "-n", "20", "--json",
                                         "--metrics-file", file))
        assert load["requests"] == 20 and load["failed"] == 0 and load["latency_ms"]["p50"] > 0
        assert sum(bucket["requests"] for bucket in load["buckets"]) == 20
        written = read(file)
        assert written["models"][0]["compiles"] >= 1 and "process_threads" in written["metrics"]
        assert json.loads(daemon.reprise("stats", "--metrics"))["models"][0]["replays"] >= 21
        key = json.loads(daemon.reprise("recipes", "--json"))["recipes"][0]["key"]
        assert json.loads(daemon.reprise("dump", "--recipe", key, "--json"))["info"]["key"] == key


def test_commands_without_a_server_print_json_and_write_metrics(tmp_path):
    path, file = tmp_path / "model.onnx", tmp_path / "metrics.json"
    onnx.save(models.elementwise(), path)
    found = json.loads(reprise("check", path, "--json", "--metrics-file", file))
    assert found["servable"] and [axis["certified"] for axis in found["axes"]] == [True, True]
    compiled = read(file)["models"][0]
    assert compiled["compiles"] == len(found["recipes"]) > 1
    assert ({capture["recipe"] for capture in compiled["captures"]}
            == {recipe["key"] for recipe in found["recipes"]})
    bucket = found["recipes"][0]["bucket"]
    profile = json.loads(reprise("bench", path, "--profile", "--bucket", bucket, "--json",
                                 "--metrics-file", file))
    profiled = read(file)["models"][0]
    assert profiled["compiles"] == 1 and profiled["replays_by_bucket"] == {bucket: 30}
    assert profile["recipe"] == profiled["captures"][0]["recipe"]
    launches = json.loads(reprise("replay", path, "--bucket", bucket, "--json"))["launches"]
    assert len(launches) == len(profile["launches"]) > 0
    launch = json.loads(reprise("replay", path, "--bucket", bucket, "--launch", 0, "--values",
                                "--json"))
    assert launch["kernel"] == launches[0]["kernel"] and launch["outputs"][0]
    (tmp_path / "lengths.txt").write_text("16\n20\n33\n")
    plan = json.loads(reprise("plan", tmp_path / "lengths.txt", "--buckets", 2, "--json"))
    assert plan["chosen"]["k"] == 2 and "sequence_buckets" in plan["config"]
    assert json.loads(reprise("check", "--ops", "--json"))["ops"]
    path.write_bytes(b"nothing")
    refused = reprise("check", path, "--json", check=False)
    assert refused.returncode == 1 and not json.loads(refused.stdout)["servable"]


def test_phases_are_told_at_debug_by_module(repository, rng):
    repository.add("bert", models.bert(), config=PADDED)
    with Daemon(repository, "--log-level", "info,capture=debug,pass=debug,load=debug") as daemon:
        infer(daemon.client(), "bert", text_inputs(NAMES, 1, 5, rng, 200))
        log = daemon.log()
        key = re.search(r"begin capture of recipe ([0-9a-f]{16})", log).group(1)
        assert re.search(rf"end capture of recipe {key}.* \(\d+\.\d+ ms; RSS [+-]\d+ kB\)", log)
        for phase in ("specialise", "passes", "kernels", "plan", "bind", "prepare", "prime"):
            assert f"begin phase {phase}" in log and f"end phase {phase} (" in log, phase
        assert re.search(r"pass: pass \w+: \d+ nodes, were \d+, in \d+\.\d+ ms: .*\w+ [+-]\d+", log)
        assert "load: begin phase import of model bert" in log
        assert "kernel: " not in log and "lookup: " not in log


def test_lookups_batches_kernels_and_store_writes_are_told(repository, tmp_path):
    repository.add("elementwise", models.elementwise())
    with Daemon(repository, "--recipe-cache", str(tmp_path / "store"), "--log-level",
                "info,lookup=debug,queue=debug,kernel=debug,store=debug,certificate=debug") as daemon:
        answer = infer(daemon.client(), "elementwise", inputs())
        log = daemon.log()
        assert re.search(rf"lookup: recipe {answer.recipe}, .* of model elementwise: not in memory", log)
        assert re.search(r"queue: batch \d+ of .*elementwise.*: 1 requests, 1 rows, ", log)
        assert re.search(r"kernel: kernel of .*: ", log)
        assert re.search(r"certificate: axis sequence of model elementwise: certified", log)
        wait_until(lambda: re.search(rf"end writing recipe-{answer.recipe}-\S+ \(", daemon.log()))


def test_log_levels_change_while_serving(repository):
    repository.add("elementwise", models.elementwise())
    with Daemon(repository, "--log-level", "warning") as daemon:
        assert "listening" not in daemon.log()
        grpc = daemon.client()
        settings = grpc.get_log_settings(as_json=True)["settings"]
        assert settings["reprise.log_level"]["string_param"] == "warning"
        changed = grpc.update_log_settings({"log_verbose_level": 1, "log_info": None}, as_json=True)
        assert changed["settings"]["reprise.log_level"]["string_param"] == "debug"
        get(daemon, "/v2/logging", {"reprise.log_level": "info,kernel=debug"})
        infer(grpc, "elementwise", inputs())
        assert re.search(r"kernel: kernel of \w+ .*: ", daemon.log())
        assert get(daemon, "/v2/logging")["reprise.log_level"] == "info,kernel=debug"
        assert get(daemon, "/v2/logging", {"log_info": False})["log_info"] is False
        http = tritonclient.http.InferenceServerClient(f"127.0.0.1:{daemon.http_port}")
        assert http.update_log_settings({"log_verbose_level": 1})["log_verbose_level"] == 1
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(daemon, "/v2/logging", {"log_nonsense": True})
        assert "log_nonsense" in refused.value.read().decode()
    wrong = run_reprised("--model-repository", str(repository), "--log-level", "info,x=debug")
    assert wrong.returncode == 2 and "'x' is not a module" in wrong.stderr


def test_captures_and_replays_are_traced(repository, tmp_path):
    repository.add("elementwise", models.elementwise())
    file, out = tmp_path / "trace.json", tmp_path / "absent" / "trace.json"
    with Daemon(repository, "--trace-file", str(file)) as daemon:
        infer(daemon.client(), "elementwise", inputs())
    events = json.loads(file.read_text())
    names = {event["name"] for event in events}
    assert any(name.startswith("capture of recipe ") for name in names)
    assert "phase specialise" in names and any(n.startswith("replay ") for n in names)
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)
    wrong = run_reprised("--model-repository", str(repository), "--trace-file", str(out))
    assert wrong.returncode == 1 and "cannot be written" in wrong.stderr


def test_buckets_of_an_axis_that_may_not_be_padded_are_a_warning(repository):
    repository.add("mixes", models.mixes_sequence(), config=(
        'parameters { key: "reprise.sequence_buckets" value { string_value: "16,32" } }'))
    with Daemon(repository) as daemon:
        assert re.search(r"warn\w* model mixes: reprise.sequence_buckets is configured and has no "
                         r"effect, since axis sequence may not be padded: ", daemon.log())


def test_buckets_and_warmups_of_a_model_that_captures_nothing_are_warnings(repository):
    repository.add("plain", models.elementwise(), config="".join(
        f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}\n'
        for key, value in {"capture": "off", "sequence_buckets": "16,32", "warmup": "all"}.items()))
    with Daemon(repository, "--frozen") as daemon:
        for parameter in ("reprise.sequence_buckets", "reprise.warmup"):
            assert re.search(rf"warn\w* model plain: {parameter} is configured and has no effect, "
                             r"since nothing is captured", daemon.log())
        # Nothing that is frozen is missing either.
        assert daemon.client().is_model_ready("plain")
        assert infer(daemon.client(), "plain", inputs()).capture == "eager"


def test_explain_of_many_sizes_says_those_that_differ(repository, rng):
    """Thirty inputs, each with an axis of its own."""
    count = 30
    shapes = {f"input_number_{i}": [f"axis_number_{i}"] for i in range(count)}
    nodes = [helper.make_node("CumSum", [name, "zero"], [f"y{i}"]) for i, name in enumerate(shapes)]
    graph = helper.make_graph(
        nodes, "many", [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in shapes.items()],
        [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) for i in range(count)],
        [helper.make_tensor("zero", TensorProto.INT64, [], [0])])
    config = "".join(f'parameters {{ key: "reprise.padding.{dims[0]}" value {{ string_value: "off" }} }}\n'
                     for dims in shapes.values())
    repository.add("many", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
                   config=config)
    with Daemon(repository) as daemon:
        for last in (3, 4):
            sizes = [2] * (count - 1) + [last]
            infer(daemon.client(), "many", {name: rng.standard_normal(size).astype(np.float32)
                                            for name, size in zip(shapes, sizes)})
        captures = re.split(r"^#", daemon.reprise("explain"), flags=re.M)[1:]
        assert len(captures) == 2
        assert "(axis_number_29=4 …)" in captures[1] and "axis_number_29 3, needed 4" in captures[1]
        for line in "\n".join(captures).splitlines():
            assert len(line) < 260 or "avoid" in line, line
