"""A program on a terminal of its own, as a person has it.

    with Terminal("reprise", "chat", model) as terminal:
        terminal.wait_for(">>> ")
        terminal.write("hello\\n")
        terminal.write(CTRL_C)
"""

import os
import pty
import select
import subprocess
import time

CTRL_C, CTRL_D = "\x03", "\x04"


class Terminal:
    def __init__(self, *command, wait_s=60):
        self._command, self._wait_s = [str(one) for one in command], wait_s
        self.text = ""  # all that was shown

    def __enter__(self):
        self._ours, theirs = pty.openpty()
        # `setsid --ctty` makes the terminal the controlling one: Ctrl-C becomes a signal there.
        self.process = subprocess.Popen(["setsid", "--ctty", "--wait", *self._command],
                                        stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            os.write(self._ours, b"\x1c")  # SIGQUIT, to all that it is the terminal of
            self.process.wait(30)
        os.close(self._ours)

    def write(self, text):
        os.write(self._ours, text.encode())

    def _read(self, until):
        """Takes what is shown; False where nothing more comes."""
        left = until - time.monotonic()
        if left <= 0 or not select.select([self._ours], [], [], left)[0]:
            return False
        try:
            part = os.read(self._ours, 1 << 16)
        except OSError:  # EIO: the last one that had the terminal has ended
            return False
        self.text += part.decode(errors="replace").replace("\r\n", "\n")
        return bool(part)

    def wait_for(self, found, after=0):
        """Waits until `found`, a text or a question about the text, holds of what is shown from `after` on."""
        holds = (lambda text: found in text) if isinstance(found, str) else found
        until = time.monotonic() + self._wait_s
        while not holds(self.text[after:]):
            assert self._read(until), f"{found!r} was not shown: {self.text[after:]!r}"
        return self.text[after:]

    def wait(self):
        """Waits for the end; the exit code."""
        until = time.monotonic() + self._wait_s
        while self._read(until):
            pass
        return self.process.wait(max(1, until - time.monotonic()))
