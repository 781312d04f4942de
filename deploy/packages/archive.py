"""Archives that are equal where their contents are: no times, no users, sorted names."""

import tarfile

from .source import date


def plain(member):
    """Returns a member of a tar file that belongs to root and is as old as the commit."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mtime = date()
    return member


def add(archive, folder, name):
    """Adds all below `folder` as `name`, in the order of names; empty folders as well."""
    for path in [folder, *sorted(folder.rglob("*"))]:
        inside = str(path.relative_to(folder))
        place = name if inside == "." else f"{name}/{inside}" if name else inside
        if place:
            archive.add(path, place, recursive=False, filter=plain)


def write_tar(path, folder, name, mode="w"):
    with tarfile.open(path, mode, format=tarfile.PAX_FORMAT) as archive:
        add(archive, folder, name)
    return path
