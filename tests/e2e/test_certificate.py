"""The verdicts on padding, by reprise explain, the metric and after a restart."""

from testing import families, models
from testing.daemon import Daemon
from testing.metrics import Scrape

MODELS = {
    "mixes": (models.cached_decoder, "refused", "(Softmax) normalises over sequence"),
    "softmax": (models.softmax_sequence, "proved", ""),
    "bert": (models.bert, "proved", ""),
    "lowest": (families.ALL["e5_optimum"], "proved", ""),
}
BECAUSE = {
    "refused": "NOT safe to pad",
    "proved": "no node lets a position see the padding after it",
}


def verdicts(daemon):
    """Returns the metric of each model's sequence: a verdict, and the op that mixes positions."""
    found = {}
    for labels, value in Scrape(daemon.metrics_url).find("reprise_axis_verdict", axis="sequence"):
        assert value == 1
        assert labels["model"] not in found
        found[labels["model"]] = (labels["verdict"], labels["mixing"])
    return found


def test_the_first_node_that_mixes_positions_is_named_everywhere(repository, tmp_path):
    for name, (make, _, _) in MODELS.items():
        repository.add(name, make())
    told = []
    for _ in range(2):
        with Daemon(repository, "--recipe-cache", str(tmp_path / "store")) as daemon:
            told.append(verdicts(daemon))
            for name, (_, verdict, words) in MODELS.items():
                text = daemon.reprise("explain", name)
                assert BECAUSE[verdict] in text and words in text
                assert told[-1][name][0] == verdict
                assert words in told[-1][name][1]
    assert told[0] == told[1], "the store keeps what was found"
