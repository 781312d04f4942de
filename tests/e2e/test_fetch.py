"""Models that are named at a place elsewhere, fetched from servers on this machine that speak the protocols."""

import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.request

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from testing import chats
from testing.certificates import Authority
from testing.daemon import BUILD, Daemon, free_ports
from testing.remotes.pulls import BLOCK, cache, files_in, heavy, nothing_is_visible, pull, remote, small
from testing.hub import Folder
from testing.patience import wait_until
from testing.remotes import COMMIT, Remote


# --- The hub. ---


def test_a_repository_is_the_model_and_what_says_what_texts_mean(remote, cache):
    remote.add_hub("acme/minilm", {
        "onnx/model.onnx": small(), "onnx/model_int8.onnx": small(), "config.json": b"{}",
        "tokenizer.json": b"{}", "1_Pooling/config.json": b"{}", "2_Dense/model.safetensors": b"w",
        "README.md": b"#", "model.safetensors": BLOCK, "openvino/model.xml": b"x"},
        lfs={"onnx/model.onnx"})
    path = pull(remote, cache, "hf://acme/minilm")
    assert files_in(path) == ["1_Pooling/config.json", "2_Dense/model.safetensors", "config.json",
                              "onnx/model.onnx", "tokenizer.json"]
    one = pull(remote, cache, "hf://acme/minilm:onnx/model_int8.onnx")
    assert one.name == "model_int8.onnx" and one.is_file()
    assert pull(remote, cache, "hf://acme/minilm:int8").name == "model_int8.onnx"
    assert pull(remote, cache, "hf://acme/minilm", "--variant", "int8").name == "model_int8.onnx"
    wrong = pull(remote, cache, "hf://acme/minilm:onnx/model_int4.onnx", check=False)
    assert wrong.returncode == 1 and "did you mean onnx/model_int8.onnx?" in wrong.stderr


def test_lists_of_files_come_in_pages(remote, cache):
    remote.page = 3
    remote.add_hub("acme/m", {f"{i}.json": b"{}" for i in range(10)} | {"model.onnx": small()})
    assert len(files_in(pull(remote, cache, "hf://acme/m"))) == 11


def test_external_data_comes_with_its_model(remote, cache, tmp_path):
    weight = numpy_helper.from_array(np.arange(64, dtype=np.float32).reshape(32, 2), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 32])
    graph = helper.make_graph([helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
                               helper.make_node("MatMul", ["x", "t"], ["y"])], "g", [x], [y], [weight])
    onnx.save_model(helper.make_model(graph), tmp_path / "model.onnx", save_as_external_data=True,
                    location="model.onnx_data", size_threshold=0)
    data = {name: (tmp_path / name).read_bytes() for name in ("model.onnx", "model.onnx_data")}
    remote.add_hub("acme/m", {f"onnx/{name}": value for name, value in data.items()})
    path = pull(remote, cache, "hf://acme/m")
    assert files_in(path) == ["onnx/model.onnx", "onnx/model.onnx_data"]
    # An address of the web names one file; its companions are asked for by the model's words.
    remote.add_file("/w/model.onnx_data", data["model.onnx_data"])
    assert files_in(pull(remote, cache, remote.add_file("/w/model.onnx", data["model.onnx"])).parent) == [
        "model.onnx", "model.onnx_data"]
    remote.add_hub("acme/half", {"model.onnx": data["model.onnx"]})
    half = pull(remote, cache, "hf://acme/half", check=False)
    assert half.returncode == 1 and '"model.onnx_data", which is not there' in half.stderr


def test_weights_alone_are_refused_with_the_command_that_makes_a_model(remote, cache):
    remote.add_hub("acme/bert", {"model.safetensors": b"w", "config.json": b"{}"})
    done = pull(remote, cache, "hf://acme/bert", check=False)
    assert done.returncode == 1
    assert "optimum-cli export onnx --model acme/bert FOLDER" in done.stderr


def test_a_revision_pins_bytes_and_a_branch_follows_them(remote, cache):
    other = "f" * 40
    remote.add_hub("acme/m", {"model.onnx": small(), "config.json": b"{}"})
    first = pull(remote, cache, "hf://acme/m")
    remote.add_hub("acme/m", {"model.onnx": small(), "config.json": b'{"a": 1}'}, commit=other)
    second = pull(remote, cache, "hf://acme/m")
    assert (first / "config.json").read_text() == "{}" and (second / "config.json").read_text() != "{}"
    assert pull(remote, cache, f"hf://acme/m@{COMMIT}") == first
    # Bytes that a commit pins are here: no host is asked.
    remote.requests.clear()
    assert pull(remote, cache, f"hf://acme/m@{COMMIT}") == first
    assert remote.requests == []
    wrong = pull(remote, cache, "hf://acme/m@v9", check=False)
    assert wrong.returncode == 1 and "404" in wrong.stderr


def test_the_hubs_own_client_takes_the_same_files(cache, tmp_path):
    """The stand-in for the hub speaks as its client expects it."""
    import huggingface_hub
    with Remote(token="hf_secret") as remote:
        remote.add_hub("acme/m", {"model.onnx": small(), "config.json": b"{}"}, lfs={"model.onnx"})
        theirs = pathlib.Path(huggingface_hub.snapshot_download(
            "acme/m", cache_dir=tmp_path / "theirs", endpoint=remote.url, token="hf_secret"))
        ours = pull(remote, cache, "hf://acme/m")
        assert theirs.name == COMMIT and files_in(theirs) == files_in(ours)
        for name in files_in(ours):
            assert (theirs / name).read_bytes() == (ours / name).read_bytes()


# --- Credentials. ---


def test_the_hubs_token_stays_with_the_hub(cache, tmp_path):
    with Remote(token="hf_secret") as hub, Remote(host="localhost") as files:
        hub.lfs_host = files
        hub.add_hub("acme/m", {"model.onnx": small()}, lfs={"model.onnx"})
        done = pull(hub, cache, "hf://acme/m", check=False)
        assert done.returncode == 0, done.stderr
        assert all(one.headers["authorization"] == "Bearer hf_secret" for one in hub.requests)
        assert files.requests and not any("authorization" in one.headers for one in files.requests)
        # Another port of the same host is another server.
        with Remote() as port:
            hub.lfs_host = port
            hub.add_hub("acme/m", {"model.onnx": small(), "config.json": b"{}"}, lfs={"config.json"},
                        commit="a" * 40)
            pull(hub, cache, "hf://acme/m")
            assert port.requests and not any("authorization" in one.headers for one in port.requests)
        hub.lfs_host = None
        # The file that `hf auth login` writes.
        (cache / ".cache/huggingface").mkdir(parents=True)
        (cache / ".cache/huggingface/token").write_text("hf_secret\n")
        environment = hub.environment()
        del environment["HF_TOKEN"]
        pull(hub, tmp_path / "other", "hf://acme/m", environment=environment | {"HOME": str(cache)})
        refused = pull(hub, tmp_path / "third", "hf://acme/m", check=False,
                       environment=environment | {"HF_TOKEN": "hf_wrong"})
        assert refused.returncode == 1 and "$HF_TOKEN" in refused.stderr
        assert "hf_wrong" not in refused.stderr + refused.stdout


def test_s3_is_asked_with_signatures(cache, tmp_path):
    files = {"m/minilm/1/model.onnx": small(), "m/minilm/config.pbtxt": b"", "m/minilm2/x": b"",
             "m/a b+\u00fc.onnx": small()}
    with Remote(aws_key=("AKID", "topsecret")) as remote:
        remote.page = 1
        remote.add_bucket("acme", files)
        assert files_in(pull(remote, cache, "s3://acme/m/minilm")) == ["1/model.onnx", "config.pbtxt"]
        for token in ("", "session"):
            path = pull(remote, tmp_path / f"t{token}", "s3://acme/m/minilm",
                        environment=remote.environment(AWS_SESSION_TOKEN=token))
            assert files_in(path) == ["1/model.onnx", "config.pbtxt"]
        refused = pull(remote, tmp_path / "r", "s3://acme/m/minilm", check=False,
                       environment=remote.environment(AWS_SECRET_ACCESS_KEY="guess"))
        assert refused.returncode == 1 and "$AWS_ACCESS_KEY_ID" in refused.stderr
        assert "guess" not in refused.stderr
        # A profile of ~/.aws.
        (tmp_path / "home/.aws").mkdir(parents=True)
        (tmp_path / "home/.aws/credentials").write_text(
            "[other]\naws_access_key_id = no\n[work]\naws_access_key_id = AKID\n"
            "aws_secret_access_key = topsecret\n")
        (tmp_path / "home/.aws/config").write_text(
            f"[profile work]\nregion = eu-west-1\nendpoint_url = {remote.url}/s3\n")
        path = pull(remote, tmp_path / "p", "s3://acme/m/minilm",
                    environment={"HOME": str(tmp_path / "home"), "AWS_PROFILE": "work", "NO_PROXY": "*"})
        assert files_in(path) == ["1/model.onnx", "config.pbtxt"]
        assert "/eu-west-1/s3/" in remote.requests[-1].headers["authorization"]
        missing = pull(remote, cache, "s3://acme/m/none", check=False)
        assert missing.returncode == 1 and "has no object m/none" in missing.stderr


def test_a_service_account_signs_for_a_token_of_googles(cache, tmp_path):
    key = tmp_path / "key.pem"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    with Remote(google_token="ya29.secret") as remote:
        remote.add_bucket("acme", {"m/model.onnx": small(), "m/config.json": b"{}"})
        account = tmp_path / "account.json"
        account.write_text(json.dumps({"type": "service_account", "client_email": "bot@acme",
                                       "private_key": key.read_text(),
                                       "token_uri": remote.url + "/oauth/token"}))
        environment = remote.environment(GOOGLE_APPLICATION_CREDENTIALS=str(account))
        assert files_in(pull(remote, cache, "gs://acme/m", environment=environment)) == [
            "config.json", "model.onnx"]
        (asked,) = remote.tokens_asked
        import base64
        head, claims, signature = asked["assertion"][0].split(".")
        decoded = json.loads(base64.urlsafe_b64decode(claims + "=="))
        assert decoded["iss"] == "bot@acme" and decoded["aud"] == remote.url + "/oauth/token"
        (tmp_path / "signed").write_bytes(f"{head}.{claims}".encode())
        (tmp_path / "signature").write_bytes(base64.urlsafe_b64decode(signature + "=="))
        subprocess.run(["openssl", "pkey", "-in", str(key), "-pubout", "-out", str(tmp_path / "pub")],
                       check=True, capture_output=True)
        subprocess.run(["openssl", "dgst", "-sha256", "-verify", str(tmp_path / "pub"), "-signature",
                        str(tmp_path / "signature"), str(tmp_path / "signed")], check=True,
                       capture_output=True)
        anonymous = pull(remote, tmp_path / "a", "gs://acme/m", check=False)
        assert anonymous.returncode == 1 and "$GOOGLE_APPLICATION_CREDENTIALS" in anonymous.stderr


# --- Names. ---


@pytest.mark.parametrize("url, words", [
    ("hf://acme", "does not name ORG/REPO"), ("hf://acme/m/x", "does not name ORG/REPO"),
    ("hf://acme/m:../x", "no path of a file"), ("hf://acme/m:", "no path of a file"),
    ("s3:///x", "does not name a bucket"), ("s3://b/../x", "no plain key"),
    ("ftp://host/m.onnx", "another scheme"), ("http://example.com/m.onnx", "is not encrypted"),
    ("https://host", "no host and path"), ("https://h/m.onnx#sha256=12", "64 digits")])
def test_names_that_are_none_say_which_there_are(remote, cache, url, words):
    done = pull(remote, cache, url, check=False)
    assert done.returncode == 1 and words in done.stderr and "s3://BUCKET/KEY" in done.stderr
    from testing.daemon import run_reprised
    started = run_reprised("--model", f"m={url}")
    assert started.returncode == 2 and words in started.stderr


def test_encrypted_places_are_verified_and_not_left(remote, cache, tmp_path):
    authority = Authority(tmp_path / "certificates")
    with Remote(host="localhost", certificate=authority.sign("server")) as secure:
        url = secure.add_file("/m.onnx", small())
        trusted = secure.environment(SSL_CERT_FILE=str(authority.certificate))
        unknown = pull(secure, cache, url, check=False)
        assert unknown.returncode == 1 and "certificate" in unknown.stderr
        assert pull(secure, cache, url, environment=trusted).read_bytes() == small()
        # A redirect to where anybody could answer is not followed.
        secure.redirects["/away.onnx"] = remote.add_file("/m.onnx", small())
        away = pull(secure, cache, secure.url + "/away.onnx", environment=trusted, check=False)
        assert away.returncode == 1 and remote.requests == []


def test_secrets_of_an_address_are_not_shown(remote, cache):
    url = remote.url.replace("://", "://user:pass@") + "/none.onnx?signature=abc"
    done = pull(remote, cache, url, check=False)
    assert done.returncode == 1 and "404" in done.stderr
    assert "pass" not in done.stderr and "abc" not in done.stderr


# --- The daemon. ---


class Fetching(Daemon):
    """A daemon over one model from elsewhere."""

    def __init__(self, remote, cache, url, *flags, name="m"):
        super().__init__("unused", "--model", f"{name}={url}", "--model-cache", str(cache), *flags)
        at = self._command.index("--model-repository")
        del self._command[at:at + 2]
        self._environment = {**os.environ, "HOME": str(cache), **remote.environment()}

    def start(self):
        self.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=self._log,
                                        stderr=self._log, env=self._environment)


def asked(daemon, model="m"):
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1.5, -2.0]}]}
    request = urllib.request.Request(f"{daemon.http_url}/v2/models/{model}/infer",
                                     json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)["outputs"][0]["data"]


def test_a_daemon_serves_a_model_from_elsewhere_also_once_that_is_away(remote, cache):
    remote.add_hub("acme/m", {"model.onnx": small()}, lfs={"model.onnx"})
    with Fetching(remote, cache, "hf://acme/m") as daemon:
        assert asked(daemon) == [4, -3]
        assert f"hf://acme/m is here, version {COMMIT}" in daemon.log()
    remote.down = True
    with Fetching(remote, cache, "hf://acme/m") as daemon:
        assert asked(daemon) == [4, -3]
        assert "does not answer, version" in daemon.log() and "warning" in daemon.log()


def test_ports_are_open_while_a_model_comes(remote, cache):
    data = heavy(4)
    remote.add_hub("acme/m", {"model.onnx": data}, lfs={"model.onnx"})
    remote.pause_s = 0.05
    daemon = Fetching(remote, cache, "hf://acme/m")
    daemon.start()
    try:
        wait_until(lambda: daemon.http_status("/v2/health/live") == 200)
        ready = daemon.readiness()
        assert ready["ready"] is False and ready["models"][0]["state"] == "LOADING"
        # The end does not wait for the rest of it.
        begin = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(20) == 0 and time.monotonic() - begin < 10
    finally:
        daemon.kill()
    assert nothing_is_visible(cache)


def test_a_model_that_is_not_there_is_refused_with_the_reason(remote, cache):
    with Fetching(remote, cache, "hf://acme/none") as daemon:
        (model,) = daemon.readiness()["models"]
        assert model["state"] == "UNAVAILABLE" and "hf://acme/none" in model["reason"]
        assert "404" in model["reason"]


def test_loading_again_brings_what_has_changed(remote, cache):
    remote.add_hub("acme/m", {"model.onnx": small()})
    with Fetching(remote, cache, "hf://acme/m", "--model-control-mode", "explicit", "--load-model",
                  "m") as daemon:
        assert asked(daemon) == [4, -3]
        negated = helper.make_model(helper.make_graph(
            [helper.make_node("Neg", ["x"], ["y"])], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "k"])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "k"])]),
            opset_imports=[helper.make_opsetid("", 17)])
        remote.add_hub("acme/m", {"model.onnx": negated.SerializeToString()}, commit="b" * 40)
        daemon.reprise("load", "m")
        assert asked(daemon) == [-1.5, 2.0]
        # A request names models that the flags have; a place elsewhere is none.
        assert daemon.reprise("load", "hf://acme/m", check=False).returncode == 1


def chatting(path):
    """Makes the files of a model that chats."""
    chats.write(path)
    (path / "1" / "model.onnx").rename(path / "model.onnx")
    return {one.name: one.read_bytes() for one in path.iterdir() if one.is_file()}


@pytest.mark.parametrize("json_flag", [[], ["--json"]])
@pytest.mark.parametrize("name, ask", [
    ("doubler", "reprise infer doubler --server localhost:"),
    ("chat", """/v1/chat/completions -d '{"model": "chat", "messages": """),
])
def test_run_serves_a_model_and_says_how_to_ask_it(remote, cache, tmp_path, name, ask, json_flag):
    remote.add_hub(f"acme/{name}", {"model.onnx": small()} if name == "doubler" else chatting(tmp_path / name))
    http, grpc, metrics = free_ports(3)
    process = subprocess.Popen(
        [BUILD / "reprise", "run", f"hf://acme/{name}", "--model-cache", str(cache), "--http-port",
         str(http), "--grpc-port", str(grpc), *json_flag, "--", "--metrics-port", str(metrics),
         "--drain-grace-secs", "0"],
        env={"PATH": os.environ["PATH"], **remote.environment()}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        if json_flag:
            told = json.loads(line)
            assert (told["model"], told["url"]) == (name, f"http://localhost:{http}") and ask in told["call"]
        else:
            assert line.startswith(f"{name} is served at http://localhost:{http}")
            assert ask in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("kind, words", [("texts", "/v1/embeddings -d"), ("ranker", "/v1/rerank -d"), ("weights", None)])
def test_run_says_how_to_ask_by_what_the_model_is_for(cache, tmp_path, kind, words):
    folder = Folder(tmp_path / kind, **({"labels": ["relevant"]} if kind == "ranker" else {}))
    if kind == "texts":
        folder.sentence_transformer()
    if kind == "weights":
        (folder.path / "model.onnx").rename(folder.path / "model.safetensors")
    http, grpc, metrics = free_ports(3)
    process = subprocess.Popen(
        [BUILD / "reprise", "run", folder.path, "--http-port", str(http), "--grpc-port", str(grpc), "--", "--metrics-port",
         str(metrics), "--drain-grace-secs", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if words is None:  # it ends, and says why
            _, log = process.communicate(timeout=60)
            assert process.returncode == 1 and "optimum-cli export onnx" in log
            return
        process.stdout.readline()
        command = process.stdout.readline().strip()
        assert words in command
        done = subprocess.run(["bash", "-c", command.replace("curl", "curl --fail --silent")], capture_output=True, timeout=60)
        assert done.returncode == 0 and json.loads(done.stdout)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()


def test_a_sentence_transformer_comes_with_all_that_makes_its_vectors(remote, cache, tmp_path):
    folder = Folder(tmp_path / "st").sentence_transformer(dense=20)
    remote.add_hub("acme/st", {str(path.relative_to(folder.path)): path.read_bytes()
                               for path in folder.path.rglob("*") if path.is_file()})
    with Fetching(remote, cache, "hf://acme/st", name="st") as daemon:
        request = urllib.request.Request(
            f"{daemon.http_url}/v1/embeddings", json.dumps({"model": "st", "input": "a text"}).encode(),
            {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            vector = json.load(reply)["data"][0]["embedding"]
    np.testing.assert_allclose(vector, folder.embed("a text"), rtol=0, atol=2e-5)
