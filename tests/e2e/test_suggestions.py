"""Each record of a miss says how it would have been avoided: taken at its word, the miss is gone."""

import re

import numpy as np
import pytest

from testing import models
from testing.daemon import Daemon
from testing.inference import infer, text_inputs
from testing.metrics import Scrape
from testing.patience import wait_until

NAMES = ["input_ids", "attention_mask"]


def text(*shapes):
    rng = np.random.default_rng(3)
    return [text_inputs(NAMES, rows, length, rng, 200) for rows, length in shapes]


def floats(*shapes):
    rng = np.random.default_rng(3)
    return [{"x": rng.normal(size=shape).astype(np.float32)} for shape in shapes]


class Setting:
    """Returns the settings of the daemon: parameters of the model's config.pbtxt, and flags."""

    def __init__(self, parameters=None, flags=None):
        self.parameters = {"packing": "off", "bucket_policy": "off", **(parameters or {})}
        self.flags = dict(flags or {})

    def take(self, suggestion):
        """Puts the lines of a suggestion in, as a user does."""
        for line in suggestion.split(" and "):
            parameter = re.fullmatch(r'reprise\.([\w.]+): "(.*)"', line)
            flag = re.fullmatch(r"(--[\w-]+) (\S+)", line)
            assert parameter or flag, f"neither a line of config.pbtxt nor a flag: {line}"
            if parameter:
                name, value = parameter.groups()
                if name == "warmup" and "warmup" in self.parameters:
                    value = ",".join({**dict.fromkeys(self.parameters["warmup"].split(",")),
                                      **dict.fromkeys(value.split(","))})
                self.parameters[name] = value
            else:
                self.flags[flag.group(1)] = flag.group(2)

    def config(self):
        return "\n".join(f'parameters {{ key: "reprise.{key}" value {{ string_value: "{value}" }} }}'
                         for key, value in self.parameters.items())


def misses(daemon):
    """(reason, suggestion) of each record, oldest first."""
    records = re.split(r"^#", daemon.reprise("explain"), flags=re.MULTILINE)[1:]
    found = []
    for record in records:
        avoid = re.search(r"avoid    (.*)", record)
        reason = re.search(r"\([^)]*\)  (\w+)", record.splitlines()[0]).group(1)
        found.append((reason, avoid.group(1) if avoid else ""))
    return found


def serve(repository, model, setting, requests, store=None):
    """Returns how each request was served, and the records of misses with the counters beside them."""
    repository.add("model", model, config=setting.config())
    flags = [word for pair in setting.flags.items() for word in pair]
    if store is not None:
        flags += ["--recipe-cache", str(store)]
    try:
        with Daemon(repository, *flags) as daemon:
            def is_warm():
                scrape = Scrape(daemon.metrics_url)
                return scrape.total("reprise_warmup_done") == scrape.total("reprise_warmup_wanted")

            # The model is ready before all of its warm-up is: a request would race with the rest.
            wait_until(is_warm)
            captures = [infer(daemon.client(), "model", one).capture for one in requests]

            found = []

            # A better bucket may be at work: between two looks it captures one more.
            def recorded_as_counted():
                found[:] = misses(daemon)
                recorded = [reason for reason, _ in found]
                counted = Scrape(daemon.metrics_url).by("reprise_compiles_total", "reason",
                                                        model="model")
                return {reason: recorded.count(reason) for reason in set(recorded)} == counted

            wait_until(recorded_as_counted, explain=lambda: f"counters do not agree with {found}")
            return captures, found
    finally:
        repository.remove("model")


def of_requests(found):
    return [(reason, line) for reason, line in found if reason not in ("warmup", "bucket_change")]


def images(*shapes):
    rng = np.random.default_rng(3)
    return [{"pixels": rng.normal(size=shape).astype(np.float32),
             "mask": np.ones(shape, np.float32)} for shape in shapes]


# Buckets of which each is asked for twice. Their recipes are equally large: recipes of more positions have
# the launches of attention once for each row.
MANY = [(rows, length) for rows in (1, 2, 4, 8, 16, 32) for length in (16, 32, 64)]


def fills_a_megabyte(repository):
    """Makes a model whose recipes for the buckets of MANY need one and a half megabytes: too many for a
    limit of one, and not for the limit of two that is suggested then."""
    repository.add("model", models.bert(layers=6), config=Setting({"tune": "off"}).config())
    try:
        with Daemon(repository) as daemon:
            infer(daemon.client(), "model", text((1, 16))[0])
            size = Scrape(daemon.metrics_url).total("reprise_cache_bytes", model="model")
    finally:
        repository.remove("model")
    return models.bert(layers=max(1, round(6 * 1.5 * 2**20 / (size * len(MANY)))))


CASES = {
    "first_request": (models.bert(), {}, {}, text((1, 9))),
    "first_request, packed": (models.bert(), {"packing": "auto"}, {}, text((3, 30))),
    "new_shape": (models.bert(), {}, {}, text((1, 9), (1, 40), (3, 100), (1, 500))),
    "new_shape, another is warm": (models.bert(), {"warmup": "b1_s16"}, {}, text((1, 9), (1, 40))),
    "longer than all buckets": (models.bert(positions=2000), {"warmup": "b1_s512"}, {},
                                text((1, 700))),
    "longer than all buckets, of few positions": (models.bert(positions=700), {"warmup": "b1_s512"},
                                                  {}, text((1, 600))),
    "longer than all buckets, all warmed up": (models.bert(positions=2000), {
        "warmup": "all", "sequence_buckets": "16,32", "batch_buckets": "1"}, {}, text((1, 60))),
    "longer than named buckets": (models.bert(), {"sequence_buckets": "16,32"}, {}, text((1, 60))),
    "more than a replay holds": (models.bert(), {"max_batch_tokens": "256"}, {}, text((1, 300))),
    "no axis": (models.no_batch_axis(), {}, {}, floats((4, 6))),
    "two axes": (models.masked_image(), {}, {}, images((1, 20, 30), (3, 40, 9))),
    "two axes, one too large": (models.masked_image(), {}, {}, images((1, 700, 30))),
    "evicted, exact shapes": (models.mixes_sequence(), {"max_exact": "3"}, {},
                              floats(*[(1, n) for n in [5, 6, 7, 8, 8, 5, 5, 8]])),
    "evicted, room of the model": (fills_a_megabyte, {
        "max_recipe_mb": "1", "capture": "inline", "tune": "off"}, {}, text(*2 * MANY)),
    "evicted, room of the server": (fills_a_megabyte, {"capture": "inline", "tune": "off"},
                                    {"--recipe-cache-memory-mb": "1"}, text(*2 * MANY)),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_suggested_avoids_the_miss(repository, case):
    model, parameters, flags, requests = CASES[case]
    if callable(model):
        model = model(repository)
    setting = Setting(parameters, flags)
    _, found = serve(repository, model, setting, requests)
    wanted = case.split(",")[0]
    found = [(reason, line) for reason, line in of_requests(found)
             if wanted != "evicted" or reason == "evicted"]
    assert found
    if wanted in ("first_request", "evicted"):
        assert {reason for reason, _ in found} == {wanted}
    for _, line in found:
        setting.take(line)
    captures, after = serve(repository, model, setting, requests)
    if wanted == "evicted":
        assert "evicted" not in [reason for reason, _ in after], setting.__dict__
        return
    assert set(captures) <= {"replayed", "larger"}, (setting.__dict__, captures)
    assert of_requests(after) == [], setting.__dict__


def damage(folder):
    for path in folder.glob("recipe-*"):
        path.write_bytes(path.read_bytes()[:-1])


def forget_use(folder):
    """Lists only used recipes, so that a start restores nothing before it is asked."""
    for path in folder.glob("usage-*"):
        path.unlink()


@pytest.mark.parametrize("reason, flags, change", [
    ("store_corrupt", {}, damage),
    ("device_changed", {"--max-isa": "baseline"}, lambda folder: None)])
def test_what_the_store_did_not_give_is_avoided_as_well(repository, tmp_path, reason, flags, change):
    folder, requests = tmp_path / "store", text((1, 9))
    serve(repository, models.bert(), Setting(), requests, folder)
    forget_use(folder)
    change(folder)
    setting = Setting(flags=flags)
    captures, found = serve(repository, models.bert(), setting, requests, folder)
    assert captures == ["captured"] and [one for one, _ in found] == [reason]
    setting.take(found[0][1])
    forget_use(folder)
    captures, found = serve(repository, models.bert(), setting, requests, folder)
    assert captures == ["replayed"] and of_requests(found) == []


@pytest.mark.parametrize("model, parameters, requests, why", [
    (models.mixes_sequence(), {}, floats((1, 9)), "sequence is not proved safe"),
    (models.bert(), {"padding.sequence": "off"}, text((1, 9)), 'reprise.padding.sequence: "off"'),
    (models.shape_input(), {}, None, "decides a shape")])
def test_where_nothing_would_have_avoided_it_the_record_says_why(repository, model, parameters,
                                                                 requests, why):
    if requests is None:
        requests = [{"x": np.zeros(6, np.float32), "shape": np.array([3, 2], np.int64)}]
    _, found = serve(repository, model, Setting(parameters), requests)
    assert len(found) == 1
    assert found[0][1].startswith("none: ") and why in found[0][1]
