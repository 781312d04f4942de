"""A cluster of Ray on this machine, whose nodes are processes, in the environment that deploy/lib.sh makes.

    with Cluster(tmp_path, cpus=[1, 1]) as cluster:
        cluster.run("examples/batch_embed/ray_embed.py", ...)
"""

import os
import pathlib
import shutil
import subprocess
import tempfile

from testing.daemon import BUILD, SOURCE, free_ports
from testing.leftovers import end_tree

ENVIRONMENT = pathlib.Path(os.environ["REPRISE_CACHE"]) / "ray"


def module(folder):
    """Lays the module of the wheel there, around the programs of this build; returns the folder to import from."""
    shutil.copytree(SOURCE / "deploy/python/reprise", folder / "reprise")
    programs = folder / "reprise/tree/bin"
    programs.mkdir(parents=True)
    for name in ("reprised", "reprise"):
        (programs / name).symlink_to(BUILD / name)
    return folder


class Cluster:
    """Nodes that have as many CPUs as `cpus` says."""

    def __init__(self, folder, cpus, *paths):
        self._cpus = cpus
        self._nodes = []
        # Names of sockets below it must be short.
        self._temporary = tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True)
        self._log = folder / "ray.log"
        self.port, self.client_port, self.dashboard_port, self.agent_port = free_ports(4)
        self.address = f"127.0.0.1:{self.port}"
        path = os.pathsep.join(map(str, [module(folder / "module"), *paths]))
        self.environment = {**os.environ, "PYTHONPATH": path, "RAY_ADDRESS": self.address, "RAY_USAGE_STATS_ENABLED": "0",
                            "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_DATA_DISABLE_PROGRESS_BARS": "1", "RAY_DEDUP_LOGS": "0",
                            # Ray gives its processes a niceness of 15: on a busy machine they take minutes to start.
                            "RAY_worker_niceness": "0",
                            "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "120", "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "120",
                            # A proxy would send to the other node only requests that its own has no room for.
                            "RAY_SERVE_PROXY_PREFER_LOCAL_NODE_ROUTING": "0",
                            # Other tests share this machine: memory is not Ray's to watch.
                            "RAY_memory_monitor_refresh_ms": "0",
                            # As examples/ray_serve/Dockerfile has it.
                            "RAY_kill_child_processes_on_worker_exit_with_raylet_subreaper": "true"}

    def _start(self, cpus, *flags):
        with open(self._log, "a") as log:
            self._nodes.append(subprocess.Popen(
                [ENVIRONMENT / "bin/ray", "start", "--block", f"--num-cpus={cpus}", f"--object-store-memory={100 << 20}",
                 "--disable-usage-stats", "--node-ip-address=127.0.0.1", *flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment))

    def __enter__(self):
        head = ["--head", f"--port={self.port}", f"--temp-dir={self._temporary.name}", "--include-dashboard=false",
                f"--ray-client-server-port={self.client_port}", f"--dashboard-agent-listen-port={self.agent_port}"]
        try:
            self._start(self._cpus[0], *head)
            self.python("-c", "import ray; ray.init()")
            # One after the other: several that start at once give up on a machine that is busy.
            for count, cpus in enumerate(self._cpus[1:], 2):
                self._start(cpus, f"--address={self.address}", f"--dashboard-agent-listen-port={free_ports(1)[0]}")
                self.python("-c", "import ray, time; ray.init()\n"
                            f"while sum(node['Alive'] for node in ray.nodes()) < {count}: time.sleep(0.1)")
        except BaseException as why:
            self.__exit__()
            raise AssertionError(f"{why}\n{self._log.read_text()[-4000:]}") from why
        return self

    def __exit__(self, *_):
        for node in reversed(self._nodes):
            end_tree(node.pid)
            node.wait()
        self._temporary.cleanup()

    def start(self, *arguments, program="python", log=subprocess.PIPE):
        """Starts a program of the environment as a driver of this cluster."""
        return subprocess.Popen([ENVIRONMENT / "bin" / program, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=log,
                                stderr=subprocess.STDOUT, text=True, env=self.environment)

    def python(self, *arguments, check=True):
        """Runs Python until it ends; the finished process, whose output is `stdout`."""
        process = self.start(*arguments)
        try:
            said, _ = process.communicate(timeout=300)
        finally:
            end_tree(process.pid)
        assert not check or process.returncode == 0, said[-4000:]
        return subprocess.CompletedProcess(arguments, process.returncode, said)
