"""The packages of Reprise, made from a build folder.

    source.py   what is packaged: the tree, its version and its date
    elf.py      what a program or library needs from outside
    tree.py     bin/, lib/reprise/, share/: the files that all packages hold
    bill.py     what was linked and compiled in: the bill of materials, the licences
    deb.py, wheel.py, tar.py, image.py    one kind of package each
"""
