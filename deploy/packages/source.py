"""The source of a package: the version of CMakeLists.txt, the date of the last commit, the folders."""

import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
SUMMARY = "Inference server for ONNX models on CPUs that captures and replays graphs"


def run(*command, **options):
    """Returns the output of a command; where it fails, ends with its error output."""
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          **options)
    if done.returncode != 0:
        raise SystemExit(f"error: {' '.join(str(c) for c in command)} failed\n{done.stdout}{done.stderr}")
    return done.stdout


def version():
    """Returns the one version of the tree, which the programs say as well."""
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"^project\(reprise VERSION (\S+)", text, re.M).group(1)


def date():
    """Seconds since 1970 that every file of a package gets, so that equal trees make equal packages."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    # Neither git nor its folder is where the Dockerfile builds.
    if shutil.which("git") and (ROOT / ".git").exists():
        return int(run("git", "-C", ROOT, "log", "-1", "--format=%ct"))
    return int((ROOT / "CMakeLists.txt").stat().st_mtime)
