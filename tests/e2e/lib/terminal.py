"""A program on a terminal of its own, for tests in which what is typed depends on more than what the screen shows."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

from lib.deputy import LIMIT, NoTerminal, Result


class Terminal:
    """`wait` finds each text after the one that was found before it; `screen` is all that was shown."""

    def __init__(self, box, *argv, env=None, columns=200):
        self.box, self.argv, self.screen, self.seen, self.code = box, [str(a) for a in argv], "", 0, None
        self.bytes = b""
        try:
            self.pid, self.master = pty.fork()
        except OSError as error:
            raise NoTerminal from error
        if self.pid == 0:
            try:
                os.chdir(box.ws)
                os.closerange(3, 64)
                os.execve(box.deputy, [box.deputy, *self.argv], box.environment(env))
            finally:
                os._exit(127)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)

    def read(self, seconds):
        """False when the program has closed the terminal."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""
        self.bytes += data
        self.screen = self.bytes.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
        return bool(data)

    def wait(self, text):
        """Reads until the text appears, after the last one that was waited for."""
        deadline = time.monotonic() + LIMIT
        while (at := self.screen.find(text, self.seen)) < 0:
            if not self.read(0.5):
                raise AssertionError(f"the program ended before {text!r}; shown: {self.screen[-600:]!r}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{text!r} did not appear; shown: {self.screen[-600:]!r}")
        self.seen = at + len(text)
        return self

    def until(self, condition, what="a condition"):
        """Reads on until something outside has happened."""
        deadline = time.monotonic() + LIMIT
        while not condition():
            self.read(0.05)
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} did not come about; shown: {self.screen[-600:]!r}")
        return self

    def type(self, text):
        os.write(self.master, text.encode())
        return self

    def signal(self, number):
        os.kill(self.pid, number)
        return self

    def end(self):
        """Reads to the end of the program: a Result with the whole screen as `out`."""
        deadline = time.monotonic() + LIMIT
        while self.read(0.5):
            if time.monotonic() > deadline:
                raise AssertionError(f"the program did not end; shown: {self.screen[-600:]!r}")
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return Result(self.argv, self.code, self.bytes.replace(b"\r\n", b"\n"), b"")
