"""python3 -m packages [KIND...], from deploy: makes packages of the programs in build/release.

python3 -m packages root BUILD FOLDER: FOLDER becomes the root of an image, for the Dockerfile.
"""

import hashlib
import pathlib
import shutil
import sys
import tempfile

from . import deb, image, tar, tree, wheel
from .source import ROOT, version

KINDS = {"deb": deb.make, "wheel": wheel.make, "tar": tar.make, "image": image.make}


def make_packages(build, folder, kinds, level=6):
    """Makes packages of the programs in `build`, with SHA256SUMS and the bill beside them; their paths.

    `level`: of compression, 1 to 9.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        files = tree.make(build, pathlib.Path(scratch) / "tree")
        made = [KINDS[kind](files, folder, scratch, level) for kind in kinds]
        bill = folder / f"reprise-{version()}.cdx.json"
        shutil.copyfile(files / "share/doc/reprise/sbom.cdx.json", bill)
    # Of all that is there, whichever were made this time.
    others = sorted(path for path in folder.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    (folder / "SHA256SUMS").write_text("".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in others))
    return [*made, bill]


def main(arguments):
    if arguments[:1] == ["root"]:
        build, root = map(pathlib.Path, arguments[1:])
        with tempfile.TemporaryDirectory() as scratch:
            image.make_root(tree.make(build, pathlib.Path(scratch) / "tree"), root)
        return
    for path in make_packages(ROOT / "build/release", ROOT / "build/packages", arguments or list(KINDS)):
        print(f"{path.stat().st_size / 1e6:6.1f} MB  {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
