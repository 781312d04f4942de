"""Builds the image of the Dockerfile without a registry, and runs it without a container engine.

The base image is made by debootstrap from the packages' own archive; buildah builds. A container is
namespaces and a read-only root: an engine does the same for `--read-only --user`. Needs root.
"""

import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

import tritonclient.grpc

from testing.daemon import SOURCE, free_ports
from testing.leftovers import end_tree
from testing.metrics import Scrape

CACHE = pathlib.Path(os.environ["REPRISE_CACHE"]) / "container"
ROOTS = CACHE / "roots"
BASE = "docker.io/library/debian:bookworm-slim"
IMAGE = "localhost/reprise:test"
# How this machine reaches the archive; the image must not learn it.
APT_FOLDERS = ["/etc/apt/sources.list.d", "/etc/apt/apt.conf.d", "/etc/apt/auth.conf.d",
               "/usr/share/keyrings"]
# The authorities that it trusts for the registry of crates; neither do they get into the image.
AUTHORITIES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


@functools.lru_cache(maxsize=1)
def storage_driver():
    """Returns overlay, which keeps the changes of every line of the Dockerfile; vfs, whole copies, where this
    machine cannot mount one over another."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        root = pathlib.Path(folder)
        for name in ("lower", "upper", "work", "merged"):
            (root / name).mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "overlay", "overlay", "-o",
             f"lowerdir={root}/lower,upperdir={root}/upper,workdir={root}/work", root / "merged"],
            stdin=subprocess.DEVNULL, capture_output=True)
        if mounted.returncode != 0:
            return "vfs"
        run("umount", root / "merged")
        return "overlay"


def buildah(*arguments, **options):
    folder = CACHE / storage_driver()
    return run("buildah", "--root", folder / "storage", "--runroot", folder / "run",
               "--storage-driver", storage_driver(), *arguments, **options)


def archive():
    """Returns the address that apt of this machine gets its packages from."""
    sites = run("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)",
                "Created-By: Packages").splitlines()
    return next(s.split()[0] for s in sites if "security" not in s and "bookworm" in s)


def base(suite, *more):
    """Makes the tar file of a root of `suite` with the packages `more`, once."""
    kept = ROOTS / f"{'-'.join([suite, *more])}.tar"
    if not kept.is_file():
        ROOTS.mkdir(parents=True, exist_ok=True)
        root = ROOTS / f"{suite}.{os.getpid()}"
        include = [f"--include={','.join(more)}"] if more else []
        run("debootstrap", "--variant=minbase", *include, suite, root, archive())
        run("tar", "-C", root, "--exclude=./var/cache/apt/archives/*.deb", "-cf", f"{kept}.new", ".")
        shutil.rmtree(root)
        os.rename(f"{kept}.new", kept)
    return kept


def make_base():
    """Makes the base image, once."""
    if BASE in buildah("images", "--format", "{{.Name}}:{{.Tag}}"):
        return
    container = buildah("from", "scratch").strip()
    buildah("add", "--quiet", container, base("bookworm"), "/")  # which unpacks it
    buildah("commit", "--quiet", container, BASE)
    buildah("rm", container)


def cargo_volumes():
    """Volumes by which cargo reaches its registry as this machine does."""
    if not AUTHORITIES.is_file():
        return []
    config = CACHE / "cargo.toml"
    config.write_text('[http]\ncainfo = "/authorities.crt"\n')
    return [f"--volume={AUTHORITIES}:/authorities.crt:ro", f"--volume={config}:/root/.cargo/config.toml:ro"]


def build():
    """Builds the image as a plain `docker build` would; compilations come from this user's caches."""
    make_base()
    ccache = run("ccache", "--get-config", "cache_dir").strip()
    os.makedirs(ccache, exist_ok=True)
    volumes = [f"--volume={folder}:{folder}:ro" for folder in APT_FOLDERS if os.path.isdir(folder)]
    if os.path.isfile("/etc/apt/sources.list"):
        volumes.append("--volume=/etc/apt/sources.list:/etc/apt/sources.list:ro")
    volumes += cargo_volumes()
    # The library of the crate, by its sources and compiler.
    (CACHE.parent / "tokenizer").mkdir(exist_ok=True)
    volumes.append(f"--volume={CACHE.parent}/tokenizer:/root/.cache/reprise/tokenizer:rw")
    # Lines that did not change are taken from the build before.
    layers = ["--layers"] if storage_driver() == "overlay" else []
    buildah("bud", *layers, "--format", "docker", "--isolation", "chroot", "--pull=never",
            "--network", "host", *volumes, f"--volume={ccache}:/ccache:rw",
            "--build-arg", "CCACHE_DIR=/ccache", "--tag", IMAGE, SOURCE, timeout=3000)
    return json.loads(buildah("inspect", "--type", "image", IMAGE))


def unpack(folder):
    """Unpacks the root folder of the image, as an engine would mount it."""
    container = buildah("from", "--pull=never", IMAGE).strip()
    try:
        mounted = buildah("mount", container).strip()
        run("cp", "--archive", f"{mounted}/.", folder)
    finally:
        buildah("rm", container)
    return folder


class MemoryLimit:
    """A control group with `bytes_` of memory; `kind` says of which sort, None if there is none."""

    def __init__(self, bytes_):
        self.kind = None
        name = f"reprise-test-{os.getpid()}"
        for kind, root, limit, peak in [
                ("cgroup v2", "/sys/fs/cgroup", "memory.max", "memory.peak"),
                ("cgroup v1", "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                 "memory.max_usage_in_bytes")]:
            folder = pathlib.Path(root) / name
            try:
                folder.mkdir()
                # Not where the root is a plain folder: a new group has its files.
                with open(folder / limit, "r+") as file:
                    file.write(str(bytes_))
            except OSError:
                if folder.is_dir():
                    folder.rmdir()
                continue
            self.kind, self._folder, self._peak = kind, folder, folder / peak
            return

    def command(self):
        """Put before a command, runs it in the group."""
        return ["sh", "-c", f'echo $$ >"{self._folder}/cgroup.procs" && exec "$@"', "sh"]

    def peak_bytes(self):
        return int(self._peak.read_text())

    def kills(self):
        for name in ("memory.events", "memory.oom_control"):
            path = self._folder / name
            if path.is_file():
                return int(dict(line.split() for line in path.read_text().splitlines())["oom_kill"])
        raise AssertionError("the group does not count kills")

    def remove(self):
        if self.kind:
            self._folder.rmdir()


# Mounts as an engine does, makes the root read-only and becomes the image's user. $1: the root,
# $2: the models, $3: a writable volume for /var/cache/reprise or nothing; the rest is its environment
# and the command that changes root and user. A network of its own has no interface that is up.
_ENTER = r"""
set -e
root=$1 models=$2 volume=$3
shift 3
[ "$(readlink /proc/self/ns/net)" = "$HOST_NETWORK" ] || ip link set lo up
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for device in null zero full random urandom; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mount --bind "$models" "$root/models"
mount -o remount,ro,bind "$root/models"
[ -z "$volume" ] || mount --bind "$volume" "$root/var/cache/reprise"
mount -o remount,ro,bind "$root"
cd /
exec env -i "$@"
"""


class Container:
    """The image's entry point, running with a read-only root; ended at the end of the block.

    On the machine's network it gets free ports; on a network of its own it runs on the image's ports,
    where only the image's health check calls it.
    """

    def __init__(self, root, config, models, log, *flags, limit=None, volume="", own_network=False):
        self.http_port, self.grpc_port, self.metrics_port = free_ports(3)
        self._root, self._config, self._models, self._volume = root, config, models, volume
        self._limit, self._log_path, self._own_network = limit, log, own_network
        ports = ["--http-port", self.http_port, "--grpc-port", self.grpc_port,
                 "--metrics-port", self.metrics_port]
        self._command = [*config["Entrypoint"], *config["Cmd"], *([] if own_network else ports),
                         *flags]
        self.process = None

    def _environment(self):
        """Returns the image's variables, and none of this process."""
        return dict(pair.split("=", 1) for pair in self._config["Env"])

    def _enter(self, command):
        before = self._limit.command() if self._limit else []
        network = ["--net"] if self._own_network else []
        user = self._config["User"]
        pairs = [f"{name}={value}" for name, value in self._environment().items()]
        return [*before, "env", f"HOST_NETWORK={os.readlink('/proc/self/ns/net')}",
                "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *network,
                "sh", "-c", _ENTER, "sh", str(self._root), str(self._models), str(self._volume),
                *pairs, shutil.which("chroot"), f"--userspec={user}:{user}", f"--groups={user}",
                str(self._root), *map(str, command)]

    def run(self, *command):
        """Runs the image with another command; returns the finished process."""
        return subprocess.run(self._enter(command), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=60)

    def health_check(self):
        """Runs the check that an engine runs every few seconds: the exit code; None before there is an inside."""
        if self.daemon_pid() is None:
            return None
        user = self._config["User"]
        return subprocess.run(
            [shutil.which("nsenter"), f"--target={self.daemon_pid()}", "--mount", "--net", "--pid", "--root",
             "--wd", f"--setuid={user}", f"--setgid={user}", *self._config["Healthcheck"]["Test"][1:]],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
            env=self._environment()).returncode

    def __enter__(self):
        self._log = open(self._log_path, "w")
        started = time.monotonic()
        self.process = subprocess.Popen(self._enter(self._command), stdin=subprocess.DEVNULL,
                                        stdout=self._log, stderr=self._log)
        try:
            while not self.ready():
                assert self.process.poll() is None, self.log()
                assert time.monotonic() - started < 120, self.log()
                time.sleep(0.01)  # the interval of polling
        except BaseException:
            self.__exit__()
            raise
        self.start_seconds = time.monotonic() - started
        return self

    def __exit__(self, *_):
        # All of it: a process that becomes another user does not end with its parent any more.
        if self.process.poll() is None:
            end_tree(self.process.pid)
            self.process.wait()
        self._log.close()

    def ready(self):
        if self._own_network:
            return self.health_check() == 0
        url = f"http://127.0.0.1:{self.http_port}/v2/health/ready"
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                return response.status == 200
        except OSError:
            return False

    def client(self):
        return tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{self.grpc_port}")

    def scrape(self):
        return Scrape(f"http://127.0.0.1:{self.metrics_port}/metrics")

    def log(self):
        return pathlib.Path(self._log_path).read_text(errors="replace")

    def daemon_pid(self):
        """Returns the pid outside of the container's first process; None before it runs."""
        pid = self.process.pid
        while True:
            try:
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "reprised":
                    return int(pid)
                (pid,) = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            except (OSError, ValueError):
                return None

    def stop(self):
        """SIGTERM to the daemon; its exit code."""
        os.kill(self.daemon_pid(), signal.SIGTERM)
        return self.process.wait(60)
