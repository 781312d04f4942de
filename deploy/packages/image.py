"""The image: the contents of its root, and that root as an OCI archive.

Tools and a shell that an image does not hold need no update and help no intruder. The Dockerfile
starts from the same root.
"""

import gzip
import hashlib
import json
import pathlib
import shutil
import time

from . import archive, elf
from .source import SUMMARY, date, version

FILES = {
    "etc/passwd": "root:x:0:0:root:/:/sbin/nologin\nreprise:x:10001:10001:Reprise:/:/sbin/nologin\n",
    "etc/group": "root:x:0:\nreprise:x:10001:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    # Engines put their own over it; where one does not, the health check still finds localhost.
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
}
FOLDERS = ("models", "proc", "sys", "dev", "tmp", "var/cache/reprise")
# There to be mounted, and written by whatever user the container runs as.
WRITABLE = ("tmp", "var/cache/reprise")
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")

# As the Dockerfile says it, for engines that are given the archive.
CONFIG = {
    "User": "10001",
    "Env": ["PATH=/usr/local/bin"],
    "ExposedPorts": {"8000/tcp": {}, "8001/tcp": {}, "8002/tcp": {}},
    "Entrypoint": ["reprised", "--grpc-address", "0.0.0.0", "--http-address", "0.0.0.0", "--metrics-address",
                   "0.0.0.0"],
    "Cmd": ["--model-repository", "/models"],
    # In nanoseconds.
    "Healthcheck": {"Test": ["CMD", "reprise", "health", "--timeout-ms", "3000"], "Interval": 10_000_000_000,
                    "Timeout": 5_000_000_000, "StartPeriod": 60_000_000_000, "Retries": 3},
}


def make_root(tree, root):
    """Makes `root`, which must not exist, the root of a container with `tree` in /usr/local."""
    root = pathlib.Path(root)
    shutil.copytree(tree, root / "usr/local")
    for name in FOLDERS:
        (root / name).mkdir(parents=True)
    for name in WRITABLE:
        (root / name).chmod(0o1777)
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    runtime = {}
    for program in sorted((tree / "bin").iterdir()):
        runtime.update({name: path for name, path in elf.libraries_of(program).items() if name in elf.OUTSIDE})
    # Loaded by name while running: names of hosts.
    for name, path in sorted(runtime.items()):
        place = root / "usr/lib/x86_64-linux-gnu" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    loader = root / "usr/lib64/ld-linux-x86-64.so.2"
    loader.parent.mkdir(parents=True)
    shutil.copyfile("/lib64/ld-linux-x86-64.so.2", loader)
    loader.chmod(0o755)
    (root / "lib").symlink_to("usr/lib")
    (root / "lib64").symlink_to("usr/lib64")
    if CERTIFICATES.is_file():
        place = root / CERTIFICATES.relative_to("/")
        place.parent.mkdir(parents=True)
        shutil.copyfile(CERTIFICATES, place)
    return root


def labels():
    return {
        "org.opencontainers.image.title": "reprise",
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.version": version(),
        "org.opencontainers.image.licenses": "Apache-2.0",
    }


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def make(tree, folder, scratch, level):
    """Writes reprise-VERSION-image.tar, an OCI archive, into `folder`; its path."""
    root = make_root(tree, pathlib.Path(scratch) / "root")
    plain = archive.write_tar(pathlib.Path(scratch) / "layer.tar", root, "").read_bytes()
    shutil.rmtree(root)
    layer = gzip.compress(plain, level, mtime=0)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(date()))
    config = json.dumps({
        "created": created, "architecture": "amd64", "os": "linux", "config": {**CONFIG, "Labels": labels()},
        "rootfs": {"type": "layers", "diff_ids": [digest_of(plain)]},
        "history": [{"created": created, "created_by": "deploy/package image"}],
    }).encode()

    def descriptor(kind, data, **more):
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest_of(data), "size": len(data),
                **more}

    manifest = json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("config.v1+json", config),
        "layers": [descriptor("layer.v1.tar+gzip", layer)], "annotations": labels(),
    }).encode()
    name = {"org.opencontainers.image.ref.name": version(),
            "io.containerd.image.name": f"docker.io/library/reprise:{version()}"}
    index = json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [descriptor("manifest.v1+json", manifest, annotations=name,
                                 platform={"architecture": "amd64", "os": "linux"})],
    }).encode()
    layout = pathlib.Path(scratch) / "layout"
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)
    for data in (layer, config, manifest):
        (blobs / digest_of(data).split(":")[1]).write_bytes(data)
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (layout / "index.json").write_bytes(index)
    package = folder / f"reprise-{version()}-image.tar"
    archive.write_tar(package, layout, "")
    shutil.rmtree(layout)
    return package
