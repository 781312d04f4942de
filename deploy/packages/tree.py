"""The tree that every package holds:

    bin/reprised, bin/reprise   find their libraries in lib/reprise next to bin, wherever both are
    lib/reprise/*.so*           every library but the C and C++ runtime's
    share/man/man1/             the manual pages of the programs, as they print them
    share/bash-completion/completions, share/zsh/vendor-completions, share/fish/vendor_completions.d
    share/doc/reprise/          licences of all that is in it, and its bill of materials
"""

import gzip
import json
import os
import pathlib
import shutil

from . import bill, elf
from .source import ROOT, run

# The paths where programs and libraries search for libraries, by where they lie.
RUNPATHS = {"bin": "$ORIGIN/../lib/reprise", "lib/reprise": "$ORIGIN"}


# The texts that the programs print of themselves, and where readers and shells look for them.
PRINTED = {
    "share/man/man1/{program}.1.gz": {"reprise": ["man"], "reprised": ["--man"]},
    "share/bash-completion/completions/{program}": {"reprise": ["completion", "bash"],
                                                    "reprised": ["--completion", "bash"]},
    "share/zsh/vendor-completions/_{program}": {"reprise": ["completion", "zsh"], "reprised": ["--completion", "zsh"]},
    "share/fish/vendor_completions.d/{program}.fish": {"reprise": ["completion", "fish"],
                                                       "reprised": ["--completion", "fish"]},
}


def write_printed(tree):
    for place, programs in PRINTED.items():
        for program, arguments in programs.items():
            path = tree / place.format(program=program)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = run(tree / "bin" / program, *arguments).encode()
            path.write_bytes(gzip.compress(text, 9, mtime=0) if path.suffix == ".gz" else text)


def carry_libraries(tree):
    """Copies the libraries that the programs need into lib/reprise; their paths on this system."""
    carried = {}
    for program in sorted((tree / "bin").iterdir()):
        carried.update(elf.libraries_of(program))
    carried = {name: path for name, path in carried.items() if name not in elf.OUTSIDE}
    folder = tree / "lib/reprise"
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in sorted(carried.items()):
        shutil.copyfile(path, folder / name)
        (folder / name).chmod(0o644)
    return sorted(carried.values())


def programs_and_libraries(tree):
    return [path for place in RUNPATHS for path in sorted((tree / place).iterdir())]


def set_runpaths(tree):
    for path in programs_and_libraries(tree):
        run("patchelf", "--set-rpath", RUNPATHS[str(path.parent.relative_to(tree))], path)


def refuse_what_would_not_run(tree):
    """Ends where a file of the tree needs a symbol that a system of the promised age lacks."""
    carried = {path.name for path in (tree / "lib/reprise").iterdir()}
    for path in programs_and_libraries(tree):
        missing = set(elf.dynamic(path, "NEEDED")) - elf.OUTSIDE - carried
        newer = elf.too_new(path)
        if missing or newer:
            raise SystemExit(f"error: {path.name} needs {', '.join(sorted(missing) + newer)}")


def glibc(tree):
    """Returns the version of glibc that the tree needs, (2, 35)."""
    return elf.newest_glibc(programs_and_libraries(tree))


def make(build, tree):
    """Installs the programs of the folder `build` as `tree` describes; `tree` must not exist."""
    tree = pathlib.Path(tree)
    run("cmake", "--install", build, "--component", "programs", "--strip", "--prefix", tree)
    carried = carry_libraries(tree)
    set_runpaths(tree)
    refuse_what_would_not_run(tree)
    write_printed(tree)
    parts = bill.parts(build, carried)
    documents = tree / "share/doc/reprise"
    documents.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(ROOT / "LICENSE", documents / "LICENSE")
    bill.write_licences(parts, documents / "licenses")
    (documents / "sbom.cdx.json").write_text(json.dumps(bill.cyclonedx(parts), indent=1) + "\n")
    for path in tree.rglob("*"):
        os.chmod(path, 0o755 if path.is_dir() or path.parent == tree / "bin" else 0o644)
    return tree
