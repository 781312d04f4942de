"""The proxies of deploy/proxies, each by the file that ships: only names and ports are replaced.

    with Envoy(daemons, tmp_path) as proxy:     # listens; its log is in the folder
        proxy.channel()                         # of gRPC
        proxy.http_url
    with RoundRobin(daemons, tmp_path) as proxy:    # no process: the client chooses
"""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess

import grpc

from testing.daemon import SOURCE, free_ports
from testing.leftovers import end_tree
from testing.patience import wait_until

FILES = SOURCE / "deploy/proxies"
TOOLS = pathlib.Path(os.environ["REPRISE_CACHE"]) / "deploy-tools"
SERVICE_CONFIG = FILES / "grpc_service_config.json"
# The settings of a client that wants to hear at once of a server that stopped: deploy/README.md.
OPTIONS = [("grpc.experimental.enable_hedging", 1), ("grpc.keepalive_time_ms", 1000),
           ("grpc.http2.ping_timeout_ms", 500), ("grpc.http2.max_pings_without_data", 0)]


def service_config(**changes):
    """Returns the file that ships, as an option of a channel."""
    return ("grpc.service_config", json.dumps({**json.loads(SERVICE_CONFIG.read_text()), **changes}))


class Proxy:
    """One program; `FILE` names its configuration."""

    FILE = None
    speaks_http = True

    def __init__(self, daemons, folder):
        self._daemons = daemons
        self._folder = folder
        self.http_port, self.grpc_port = free_ports(2)
        self.http_url = f"http://127.0.0.1:{self.http_port}"

    @staticmethod
    def program():
        raise NotImplementedError

    def command(self, config):
        raise NotImplementedError

    # The texts that name a replica's port and an own one.
    REPLICA = r"reprise-(\d):(800\d)"
    REPLICA_IS = "127.0.0.1:{port}"
    LISTEN = None

    def configure(self):
        """Writes the text that ships, for these daemons."""
        text = (FILES / self.FILE).read_text()
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("#") and not any(
            int(found.group(1)) >= len(self._daemons) for found in re.finditer(self.REPLICA, line))]

        def replica(found):
            daemon = self._daemons[int(found.group(1))]
            port = {"8000": daemon.http_port, "8001": daemon.grpc_port}[found.group(2)]
            return self.REPLICA_IS.format(port=port)

        text, replaced = re.subn(self.REPLICA, replica, "\n".join(lines))
        assert replaced >= 2 * len(self._daemons)
        for port, own in (("8000", self.http_port), ("8001", self.grpc_port)):
            text, replaced = re.subn(self.LISTEN.format(port=port), lambda m, own=own: m.group(1) + str(own), text)
            assert replaced == 1, (self.FILE, port, replaced)
        return text + "\n"

    def __enter__(self):
        config = self._folder / self.FILE
        config.write_text(self.configure())
        self._log = self._folder / f"{self.FILE}.log"
        with open(self._log, "w") as log:
            self.process = subprocess.Popen(self.command(config), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def listens():
            assert self.process.poll() is None, self.log()
            with socket.socket() as one:
                return one.connect_ex(("127.0.0.1", self.grpc_port)) == 0

        try:
            wait_until(listens, explain=self.log)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        end_tree(self.process.pid)
        self.process.wait()

    def log(self):
        return self._log.read_text(errors="replace")

    def channel(self):
        return grpc.insecure_channel(f"127.0.0.1:{self.grpc_port}", [("grpc.enable_retries", 0)])


class Envoy(Proxy):
    FILE = "envoy.yaml"
    REPLICA = r"address: reprise-(\d), port_value: (800\d)"
    REPLICA_IS = "address: 127.0.0.1, port_value: {port}"
    LISTEN = r"(address: 0\.0\.0\.0, port_value: ){port}"

    @staticmethod
    def program():
        return TOOLS / "envoy/_bin/envoy"

    def command(self, config):
        return [self.program(), "--config-path", config, "--use-dynamic-base-id", "--concurrency", "1",
                "--log-level", "warn"]


class Haproxy(Proxy):
    FILE = "haproxy.cfg"
    LISTEN = r"(bind :){port}"

    @staticmethod
    def program():
        return shutil.which("haproxy", path="/usr/sbin:/usr/bin")

    def configure(self):
        # Replicas differ in their address, not in their port: here it is the other way round.
        return re.sub(r"(server r(\d) .*) check$",
                      lambda m: f"{m.group(1)} check port {self._daemons[int(m.group(2))].http_port}",
                      super().configure(), flags=re.M)

    def command(self, config):
        return [self.program(), "-db", "-f", config]


class Nginx(Proxy):
    FILE = "nginx.conf"
    LISTEN = r"(listen ){port}"

    @staticmethod
    def program():
        return shutil.which("nginx", path="/usr/sbin:/usr/bin")

    def configure(self):
        return super().configure().replace(
            "worker_processes 1;", f"worker_processes 1; daemon off; pid {self._folder}/nginx.pid;")

    def command(self, config):
        return [self.program(), "-e", "stderr", "-c", config]

    def channel(self):
        # nginx keeps no copy of a gRPC call that it sent: the client repeats it.
        return grpc.insecure_channel(f"127.0.0.1:{self.grpc_port}", [service_config(healthCheckConfig=None)])


class RoundRobin:
    """gRPC's own: the client has a connection to each replica."""

    speaks_http = False
    POLICY = {"round_robin": {}}

    def __init__(self, daemons, folder):
        del folder
        self._target = "ipv4:" + ",".join(daemon.grpc_address for daemon in daemons)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def log(self):
        return ""

    def channel(self):
        return grpc.insecure_channel(self._target, [service_config(loadBalancingConfig=[self.POLICY]), *OPTIONS])


class WeightedRoundRobin(RoundRobin):
    POLICY = {"weighted_round_robin": {"blackoutPeriod": "1s", "weightUpdatePeriod": "1s"}}


ALL = [Envoy, Haproxy, Nginx, RoundRobin, WeightedRoundRobin]
