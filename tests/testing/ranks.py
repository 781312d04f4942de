"""Daemons that compute one model together (--ranks)."""

from testing.daemon import Daemon
from testing.metrics import Scrape
from testing.patience import wait_until


class Ranks:
    """Daemons that compute `model`, a GGUF file, together. `flags`: of all of them."""

    def __init__(self, folder, model, *flags, count=2, address=None):
        (folder / "none").mkdir(exist_ok=True)
        self.folder, self.model, self.flags, self.count = folder, model, flags, count
        self.address = address or f"unix:{folder}/ranks"
        self.daemons = [None] * count
        for rank in range(count):
            self.renew(rank)

    def renew(self, rank, model=None, flags=None):
        """Makes the daemon of a rank again, which is not started."""
        self.daemons[rank] = Daemon(
            self.folder / "none", "--model", f"m={model or self.model}", "--ranks", str(self.count), "--rank", str(rank),
            "--rank-address", self.address, "--drain-grace-secs", "0", *(self.flags if flags is None else flags))

    def __enter__(self):
        for daemon in self.daemons:
            daemon.start()
        for daemon in self.daemons:
            daemon.wait_ready()
        wait_until(self.are_ready, explain=self.logs)
        return self

    def __exit__(self, *_):
        for daemon in self.daemons:
            daemon.kill()

    def are_ready(self):
        return all(one.readiness().get("ready") for one in self.daemons)

    def captures(self):
        return [Scrape(one.metrics_url).total("reprise_compiles_total", model="m") for one in self.daemons]

    def logs(self):
        return "\n".join(one.log() for one in self.daemons)
