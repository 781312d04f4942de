"""Objects of Kubernetes itself, checked against the schemas of a version of its API server."""

import pathlib
import subprocess
import sys
import tempfile

import yaml


def check(objects, version):
    """Fails with the validator's words; unknown fields are errors."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "objects.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        done = subprocess.run([pathlib.Path(sys.executable).parent / "kubernetes-validate", "--strict",
                               "--kubernetes-version", version, path], capture_output=True, text=True, timeout=120)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert said.count("passed") == len(objects), said
