"""Flags of the daemon from variables and from a file."""

import os
import subprocess

from testing import models
from testing.daemon import BUILD, Daemon
from testing.inference import assert_same_answer, infer, reference, text_inputs


def run(*flags, **variables):
    return subprocess.run([BUILD / "reprised", *map(str, flags)], stdin=subprocess.DEVNULL,
                          env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)


def test_a_printed_configuration_is_one(tmp_path):
    file = tmp_path / "reprised.yaml"
    file.write_text("http-port: 9000\nmodel:\n  a: /tmp\nlog_format: json\n")
    printed = run("--print-config", "--config", file, "--streams", "3", REPRISED_GRPC_PORT="9001")
    assert printed.returncode == 0, printed.stderr
    lines = printed.stdout.splitlines()
    assert f"http-port: 9000  # {file}" in lines
    assert "grpc-port: 9001  # $REPRISED_GRPC_PORT" in lines
    assert "streams: 3  # command line" in lines
    assert "metrics-port: 8002  # default" in lines
    assert "  - a=/tmp" in lines
    # Read again, it means the same.
    again = tmp_path / "again.yaml"
    again.write_text(printed.stdout.replace(f"config: {file}", "# config"))
    values = [line.split("  #")[0] for line in run("--print-config", "--config", again).stdout.splitlines()]
    for line in lines:
        if not line.startswith(("config:", "print-config:", "#")):
            assert line.split("  #")[0] in values, line


def test_secrets_of_addresses_are_not_printed():
    printed = run("--print-config", "--model", "m=https://user:pass@host/m.onnx?signature=abc")
    assert "m=https://host/m.onnx" in printed.stdout
    assert "pass" not in printed.stdout and "abc" not in printed.stdout


def test_mistakes_name_their_place(tmp_path):
    file = tmp_path / "reprised.yaml"
    file.write_text("http-prot: 1\n")
    done = run("--config", file)
    assert done.returncode == 2
    assert f"{file} line 1: http-prot is not a flag; did you mean http-port?" in done.stderr
    done = run("--model", "m=/tmp", REPRISED_HTTP_PORT="many")
    assert done.returncode == 2 and "it comes from $REPRISED_HTTP_PORT" in done.stderr


def test_a_daemon_is_what_its_file_says(repository, tmp_path, monkeypatch):
    repository.add("elementwise", models.elementwise())
    file = tmp_path / "reprised.yaml"
    file.write_text("log-format: json\naccess-log: true\n")
    monkeypatch.setenv("REPRISED_HTP_PORT", "1")
    monkeypatch.setenv("REPRISED_SERVICE_HOST", "10.0.0.1")
    with Daemon(repository, "--config", str(file)) as daemon:
        daemon.reprise("infer", "elementwise", "--batch", "1")
        assert '"message":"request"' in daemon.log()
        assert "$REPRISED_HTP_PORT names no flag; did you mean REPRISED_HTTP_PORT?" in daemon.log()
        assert "SERVICE_HOST" not in daemon.log()


def parameter(name, value):
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'


def test_a_model_runs_on_cores_of_its_own_and_in_one_stream(repository, rng):
    cpu = max(os.sched_getaffinity(0))
    path = repository.add("m", models.bert(), config=parameter("reprise.cores", cpu) +
                          parameter("reprise.streams", 1))
    repository.add("other", models.bert(), config=parameter("reprise.cores", 1023))
    with Daemon(repository) as daemon:
        inputs = text_inputs(["input_ids", "attention_mask"], 2, 40, rng, 200)
        assert_same_answer(infer(daemon.client(), "m", inputs).outputs, reference(path, inputs))
        assert not daemon.client().is_model_ready("other")
        assert "the process may not run on CPU 1023" in daemon.log()
