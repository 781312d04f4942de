"""Scrapes: the metrics endpoint as numbers."""

import re
import urllib.request

_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')


class Scrape:
    """One page. `total` and `delta` sum over the labels that are not given."""

    def __init__(self, url):
        with urllib.request.urlopen(url, timeout=30) as response:
            assert response.status == 200
            self.text = response.read().decode()
        self.samples = []
        for line in self.text.splitlines():
            if line.startswith("#") or not line:
                continue
            name, labels, value = _SAMPLE.match(line).groups()
            self.samples.append((name, dict(_LABEL.findall(labels or "")), float(value)))

    def names(self):
        return {name for name, _, _ in self.samples}

    def find(self, name, **labels):
        return [
            (have, value) for n, have, value in self.samples
            if n == name and all(have.get(k) == v for k, v in labels.items())
        ]

    def total(self, name, **labels):
        found = self.find(name, **labels)
        assert found, f"no sample {name}{labels} in the scrape"
        return sum(value for _, value in found)

    def by(self, name, label, **labels):
        """Sums by the value of one label, without those that are 0."""
        sums = {}
        for have, value in self.find(name, **labels):
            if value:
                sums[have[label]] = sums.get(have[label], 0) + value
        return sums
