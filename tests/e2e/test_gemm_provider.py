"""--gemm-provider decides which library multiplies; the answers are the same, and a dump names it."""

import re
import shutil
import subprocess

import pytest

from testing.daemon import Daemon, run_reprised
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.repository import PARAPHRASE

NAMES = ["input_ids", "attention_mask"]


@pytest.mark.parametrize("provider,isa,foreign", [
    ("auto", None, False), ("own", None, False), ("openblas", None, True),
    # Where our kernels have no vectors, the library is the faster one.
    ("auto", "baseline", True), ("own", "baseline", False)])
def test_answers_do_not_depend_on_who_multiplies(repository, rng, provider, isa, foreign):
    path = repository.add("model", PARAPHRASE)
    cap = ["--max-isa", isa] if isa else []
    with Daemon(repository, "--gemm-provider", provider, *cap) as daemon:
        inputs = text_inputs(NAMES, 2, 12, rng, ragged=True)
        answer = infer(daemon.client(), "model", inputs)
        assert_same_answer(answer.outputs, reference(path, inputs))
        dump = daemon.reprise("dump", "--recipe", answer.recipe)
        launches = int(re.search(r"foreign launches\s+(\d+)", dump).group(1))
        assert (launches > 0) == foreign, dump


def test_an_unknown_provider_is_a_wrong_flag(tmp_path):
    done = run_reprised("--model-repository", tmp_path, "--gemm-provider", "mkl")
    assert done.returncode == 2 and "openblas" in done.stderr


# A library that the loader takes for OpenBLAS, without products.
STUB = r"""
#include <stdio.h>
#include <stdlib.h>
char core[64];
__attribute__((constructor)) void Load(void) {
  snprintf(core, sizeof(core), "%s", getenv("OPENBLAS_CORETYPE"));
}
char* openblas_get_config(void) { return "OpenBLAS 0.3.0 DYNAMIC_ARCH"; }
char* openblas_get_corename(void) { return core; }
int openblas_get_parallel(void) { return 1; }
void openblas_set_num_threads(int count) { (void)count; }
void cblas_sgemm(void) { abort(); }
void cblas_dgemm(void) { abort(); }
KIND char buffer[64];
void* blas_memory_alloc(int place) { (void)place; return buffer; }
void blas_memory_free(void* given) { (void)given; }
"""


@pytest.mark.parametrize("kind,refused", [("static __thread", True), ("static", False)])
def test_a_library_with_buffers_by_thread_is_left_out_by_name(repository, tmp_path, monkeypatch, kind,
                                                              refused):
    source = tmp_path / "stub.c"
    source.write_text(STUB)
    subprocess.run([shutil.which("cc") or shutil.which("gcc"), "-shared", "-fPIC", f"-DKIND={kind}",
                    "-o", tmp_path / "libopenblas.so.0", source], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    daemon = Daemon(repository, "--gemm-provider", "openblas")
    daemon.start()
    try:
        if refused:
            assert daemon.process.wait(60) == 1
        else:
            daemon.wait_ready()
    finally:
        daemon.kill()
    assert ("OpenBLAS is left out: it keeps buffers for each thread (it was built with USE_TLS)"
            in daemon.log()) == refused, daemon.log()
