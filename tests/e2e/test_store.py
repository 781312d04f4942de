"""--recipe-cache: the results of a first start are found by a second one, and the counters say so."""

import json

import numpy
from onnx import TensorProto

from testing import models
from testing.daemon import Daemon, reprise
from testing.inference import assert_same_answer, infer, reference, text_inputs
from testing.metrics import Scrape
from testing.repository import Repository

NAMES = ["input_ids", "attention_mask"]
# Answers of one choice of kernels are equal to the last bit; tuning may exchange it meanwhile.
UNTUNED = 'parameters { key: "reprise.tune" value { string_value: "off" } }\n'
EXACT = 'parameters { key: "reprise.padding.sequence" value { string_value: "off" } }\n'


def lookups(daemon):
    scrape = Scrape(daemon.metrics_url)
    return {outcome: scrape.total("reprise_cache_requests_total", tier="store", outcome=outcome)
            for outcome in ("hit", "miss")}, scrape.by("reprise_store_misses_total", "reason")


def test_second_start_finds_the_certificate(repository, tmp_path):
    repository.add("bert", models.bert())
    flags = ["--recipe-cache", str(tmp_path / "store")]
    with Daemon(repository, *flags) as daemon:
        assert lookups(daemon) == ({"hit": 0, "miss": 1}, {"absent": 1})
    with Daemon(repository, *flags) as daemon:
        assert lookups(daemon) == ({"hit": 1, "miss": 0}, {})


def test_a_model_of_which_nothing_is_captured_finds_its_own_record(repository, tmp_path):
    repository.add("bert", models.bert(), config='parameters { key: "reprise.capture" value { string_value: "off" } }')
    flags = ["--recipe-cache", str(tmp_path / "store")]
    with Daemon(repository, *flags) as daemon:
        assert lookups(daemon) == ({"hit": 0, "miss": 1}, {"absent": 1})
    with Daemon(repository, *flags) as daemon:
        assert lookups(daemon) == ({"hit": 1, "miss": 0}, {})
        assert "damaged" not in daemon.log()


def test_daemon_without_a_store_looks_nothing_up(repository):
    repository.add("bert", models.bert())
    with Daemon(repository) as daemon:
        assert lookups(daemon) == ({"hit": 0, "miss": 0}, {})


def warm(daemon, rng):
    client = daemon.client()
    for rows, length in [(1, 10), (1, 10), (1, 40), (2, 40), (1, 40), (1, 300), (1, 300)]:
        infer(client, "bert", text_inputs(NAMES, rows, length, rng, 200))


def test_second_start_is_ready_with_the_recipes_that_the_first_one_used(repository, tmp_path, rng):
    repository.add("bert", models.bert(), config=UNTUNED)
    flags = ["--recipe-cache", str(tmp_path / "store")]
    inputs = text_inputs(NAMES, 1, 40, rng, 200)
    with Daemon(repository, *flags) as daemon:
        warm(daemon, rng)
        before = infer(daemon.client(), "bert", inputs)
    with Daemon(repository, *flags) as daemon:
        assert "loaded recipe" in daemon.log()
        scrape = Scrape(daemon.metrics_url)
        assert scrape.total("reprise_compiles_total") == 0
        assert scrape.total("reprise_cache_recipes") > 0
        client = daemon.client()
        for length in (10, 40, 300):
            answer = infer(client, "bert", text_inputs(NAMES, 1, length, rng, 200))
            assert answer.capture == "replayed", length
        answer = infer(client, "bert", inputs)
        assert answer.recipe == before.recipe
        for name, value in before.outputs.items():
            assert numpy.array_equal(answer.outputs[name], value)
        assert Scrape(daemon.metrics_url).total("reprise_compiles_total") == 0


def test_recipes_and_certificates_are_found_whatever_the_name(repository, tmp_path):
    """A renamed model and a twin capture nothing, and are ready though the server is frozen."""
    x = numpy.ones((5, 64), numpy.float32)
    flags = ["--recipe-cache", str(tmp_path / "store")]
    for name in ("a", "b"):
        repository.add(name, models.elementwise())
    with Daemon(repository, *flags) as daemon:
        for name in ("a", "a", "b", "b"):
            infer(daemon.client(), name, {"x": x})
        assert Scrape(daemon.metrics_url).total("reprise_compiles_total") == 1
    for name in ("b", "a_new_name"):
        for more in ([], ["--frozen"]):
            other = Repository(tmp_path / f"{name}{len(more)}")
            other.add(name, models.elementwise())
            with Daemon(other, *flags, *more) as daemon:
                assert daemon.readiness()["ready"], daemon.log()
                assert infer(daemon.client(), name, {"x": x}).capture == "replayed"
                assert Scrape(daemon.metrics_url).total("reprise_compiles_total") == 0
                assert lookups(daemon)[1] == {}


def store(*arguments, code=0):
    """Runs `reprise store`, which needs no server; its output."""
    done = reprise("store", *arguments, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_store_is_listed_verified_carried_away_and_pruned(repository, tmp_path, rng):
    repository.add("bert", models.bert())
    folder = tmp_path / "store"
    with Daemon(repository, "--recipe-cache", str(folder)) as daemon:
        warm(daemon, rng)
    listed = store("list", folder)
    for word in ("recipe", "model", "usage", "bert"):
        assert word in listed, word
    assert "0 are not" in store("verify", folder)

    bundle, other = tmp_path / "bundle", tmp_path / "other"
    count = len(list(folder.glob("*.rps")))
    exported = json.loads(reprise("store", "export", folder, bundle, "--json"))
    assert (exported["records"], exported["damaged"]) == (count, 0)
    assert f"{count} of {count} records can be used" in store("import", bundle, other)
    with Daemon(repository, "--recipe-cache", str(other)) as daemon:
        assert Scrape(daemon.metrics_url).total("reprise_compiles_total") == 0
        assert "loaded recipe" in daemon.log()

    damaged = next(folder.glob("recipe-*"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert damaged.name in store("verify", folder, code=1)
    assert "damaged" in store("list", folder)
    assert json.loads(reprise("store", "prune", folder, "--json"))["removed_files"] == 1
    assert "0 are not" in store("verify", folder)
    store("prune", folder, "--max-mb", 0)
    assert not list(folder.glob("*.rps"))
    bundle.write_bytes(bundle.read_bytes()[:100])
    assert "not an intact bundle" in store("import", bundle, other, code=1)


def test_bundle_of_another_cpu_says_why_it_is_of_no_use(repository, tmp_path, rng):
    repository.add("bert", models.bert())
    folder = tmp_path / "store"
    # The reference device stands for another machine.
    with Daemon(repository, "--recipe-cache", str(folder), "--device", "reference") as daemon:
        warm(daemon, rng)
    store("export", folder, tmp_path / "bundle")
    told = store("import", tmp_path / "bundle", tmp_path / "other")
    assert "cannot: it was made for" in told
    with Daemon(repository, "--recipe-cache", str(tmp_path / "other")) as daemon:
        assert "it was stored for another device" in daemon.log()
        reasons = Scrape(daemon.metrics_url).by("reprise_compiles_total", "reason")
        # Recipes that the other machine used are captured here before the first request.
        assert {reason for reason, count in reasons.items() if count} == {"warmup"}


def test_two_daemons_share_a_folder_that_one_of_them_may_not_write(repository, tmp_path, rng):
    repository.add("bert", models.bert())
    folder = tmp_path / "store"
    with Daemon(repository, "--recipe-cache", str(folder)) as writer:
        warm(writer, rng)
    folder.chmod(0o555)
    try:
        before = {path.name: path.read_bytes() for path in folder.glob("*.rps")}
        flags = ["--recipe-cache", str(folder)]
        with Daemon(repository, *flags) as one, Daemon(repository, *flags) as two:
            for daemon in (one, two):
                assert Scrape(daemon.metrics_url).total("reprise_compiles_total") == 0
                warm(daemon, rng)
                infer(daemon.client(), "bert", text_inputs(NAMES, 4, 100, rng, 200))
        assert {path.name: path.read_bytes() for path in folder.glob("*.rps")} == before
    finally:
        folder.chmod(0o755)


def test_packed_recipes_and_exact_shapes_are_found_again_as_well(repository, tmp_path, rng):
    packing = 'parameters { key: "reprise.packing" value { string_value: "auto" } }'
    repository.add("bert", models.bert(opset=13, layers=3), config=packing + UNTUNED)
    repository.add("mixes_sequence", models.mixes_sequence(), config=UNTUNED + EXACT)
    flags = ["--recipe-cache", str(tmp_path / "store")]
    x = rng.normal(size=(1, 9)).astype(numpy.float32)

    def send(daemon):
        client = daemon.client()
        answers = []
        for inputs in (text_inputs(NAMES, 1, 10, fixed, 200), text_inputs(NAMES, 3, 90, fixed, 200)):
            answers.append(infer(client, "bert", inputs))
        answers.append(infer(client, "mixes_sequence", {"x": x}))
        return answers

    with Daemon(repository, *flags) as daemon:
        for _ in range(3):
            fixed = numpy.random.default_rng(1)
            before = send(daemon)
        assert before[0].bucket.startswith("t") and before[2].bucket == "exact"
    with Daemon(repository, *flags) as daemon:
        fixed = numpy.random.default_rng(1)
        for one, two in zip(before, send(daemon)):
            assert two.capture == "replayed"
            assert two.recipe == one.recipe
            for name, value in one.outputs.items():
                assert numpy.array_equal(two.outputs[name], value)
        assert Scrape(daemon.metrics_url).total("reprise_compiles_total") == 0


def test_outputs_of_no_known_shape_are_loaded_again(repository, tmp_path, rng):
    """No size that is tried makes a shape: nothing is known of the output, in the store either."""
    g = models.Graph(17)
    g.rename(g.node("Reshape", "x", g.ints(7919, -1)), "y")
    model = g.model([("x", TensorProto.FLOAT, ["n"])], [("y", TensorProto.FLOAT, None)])
    path = repository.add("open", model)
    inputs = {"x": rng.standard_normal(2 * 7919, numpy.float32)}
    for _ in range(2):
        with Daemon(repository, "--recipe-cache", str(tmp_path / "store")) as daemon:
            assert_same_answer(infer(daemon.client(), "open", inputs).outputs, reference(path, inputs))


def test_records_without_a_mac_by_the_key_are_not_used(repository, tmp_path, rng):
    repository.add("bert", models.bert(), config=UNTUNED)
    store = tmp_path / "store"
    keys = {}
    for name in ("one", "two"):
        keys[name] = tmp_path / f"{name}.key"
        keys[name].write_text(f"{name}: a secret of many bytes\n")

    def compiles(*flags):
        """Returns the compiles of a start on the folder for one request, and its log."""
        with Daemon(repository, "--recipe-cache", store, *flags) as daemon:
            infer(daemon.client(), "bert", text_inputs(NAMES, 1, 40, rng, 200))
            scrape = Scrape(daemon.metrics_url)
            reasons = scrape.by("reprise_store_misses_total", "reason")
            assert (scrape.total("reprise_store_unauthentic_total") > 0) == ("unauthentic" in reasons)
            return scrape.total("reprise_compiles_total"), reasons, daemon.log()

    assert compiles()[:2] == (1, {"absent": 2})
    assert compiles()[:2] == (0, {})
    # Records of a server without the key, then of one with another.
    for name, why in [("one", "has no MAC"), ("two", "its MAC is not by the store key")]:
        count, reasons, log = compiles("--store-key", keys[name])
        assert count == 1 and set(reasons) == {"unauthentic"}
        assert "recipe-" in log and why in log
        assert compiles("--store-key", keys[name])[:2] == (0, {})

    assert reprise("store", "verify", store).endswith(" 0 are not\n")
    assert reprise("store", "verify", store, "--store-key", keys["two"]).endswith(" 0 are not\n")
    wrong = reprise("store", "verify", store, "--store-key", keys["one"], check=False)
    assert wrong.returncode == 1 and "not by the store key" in wrong.stdout
    merged = reprise("store", "merge", store, "--out", tmp_path / "out", "--store-key", keys["one"])
    assert merged.startswith("0 records") and "files are left out" in merged
    # Without a key all are used, as before.
    assert compiles()[:2] == (0, {})


def test_a_store_key_that_cannot_be_used_ends_the_start(repository, tmp_path):
    short = tmp_path / "short.key"
    short.write_text("short\n")
    for path, why in [(short, "has 5 bytes, at least 16"), (tmp_path / "none.key", "none.key")]:
        daemon = Daemon(repository, "--recipe-cache", tmp_path / "store", "--store-key", path)
        daemon.start()
        assert daemon.process.wait(60) == 1
        assert why in daemon.log()
