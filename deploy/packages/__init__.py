"""The packages of Reprise, made from a build folder.

    source.py   the packaged tree, its version and its date
    elf.py      the needs of a program or library from outside
    tree.py     bin/, lib/reprise/, share/: the files that all packages hold
    bill.py     the bill of materials of all linked and compiled code, the licences
    deb.py, wheel.py, tar.py, image.py    one kind of package each
"""
