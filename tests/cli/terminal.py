# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program on a pseudo terminal, and what its screen shows: as much of a VT100 as a
program that draws by ncurses uses."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

WAIT_S = 60  # against hangs only


class Terminal:
    def __init__(self, arguments, lines=24, columns=120):
        self.lines, self.columns = lines, columns
        self.cells = [[" "] * columns for _ in range(lines)]
        self.row = self.column = 0
        self.left = ""  # of a sequence whose end has not come
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ["TERM"] = "vt100"
            for name in "LINES", "COLUMNS":
                os.environ.pop(name, None)
            # Until the size is set: a program asks for it once, at its start.
            signal.sigwait([signal.SIGUSR1])
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.execv(arguments[0], arguments)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self.resize(lines, columns)
        self.modes_before = termios.tcgetattr(self.fd)
        os.kill(self.pid, signal.SIGUSR1)

    def resize(self, lines, columns):
        self.lines, self.columns = lines, columns
        self.cells = [[" "] * columns for _ in range(lines)]
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def modes(self):
        return termios.tcgetattr(self.fd)

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def _control(self, sequence):
        arguments, final = sequence[2:-1], sequence[-1]
        numbers = [int(n or 0) for n in re.sub(r"[^0-9;]", "", arguments).split(";")]
        first = numbers[0]
        if final in "Hf":
            self.row = max(first, 1) - 1
            self.column = max(numbers[1] if len(numbers) > 1 else 1, 1) - 1
        elif final == "A":
            self.row -= max(first, 1)
        elif final == "B":
            self.row += max(first, 1)
        elif final == "C":
            self.column += max(first, 1)
        elif final == "D":
            self.column -= max(first, 1)
        elif final == "K":
            begin, end = {0: (self.column, None), 1: (0, self.column + 1), 2: (0, None)}[first]
            for at in range(*slice(begin, end).indices(self.columns)):
                self.cells[self.row][at] = " "
        elif final == "J":
            for row in range(self.row if first == 0 else 0, self.lines):
                begin = self.column if first == 0 and row == self.row else 0
                for at in range(begin, self.columns):
                    self.cells[row][at] = " "
        elif final == "r" or final in "mhl":
            pass
        else:
            raise ValueError("a sequence that this terminal has not: %r" % sequence)

    def _feed(self, text):
        text = self.left + text
        self.left = ""
        for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()].|\x1b[^\[()]|\x1b.*$|.", text, re.S):
            if part.startswith("\x1b"):
                if re.fullmatch(r"\x1b(\[[0-9;?]*|[()])?", part):
                    self.left = part
                elif part.startswith("\x1b["):
                    self._control(part)
            elif part == "\r":
                self.column = 0
            elif part == "\n":
                self.row = min(self.row + 1, self.lines - 1)
            elif part == "\b":
                self.column = max(self.column - 1, 0)
            elif part >= " ":
                if self.row < self.lines and self.column < self.columns:
                    self.cells[self.row][self.column] = part
                self.column += 1

    def read(self, seconds):
        """False: the program has closed its side."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            self._feed(os.read(self.fd, 65536).decode("ascii", "replace"))
        except OSError:
            return False
        return True

    def screen(self):
        return ["".join(row).rstrip() for row in self.cells]

    def wait(self, what, right):
        """Until right(lines of the screen)."""
        until = time.monotonic() + WAIT_S
        while not right(self.screen()):
            if time.monotonic() > until or not self.read(0.1):
                raise AssertionError("never: %s\n%s" % (what, "\n".join(self.screen())))

    def end_without_terminal(self):
        """The exit status of a program whose terminal goes."""
        os.close(self.fd)
        return self._end(lambda: time.sleep(0.05))

    def end(self):
        """The exit status of a program that ends by itself."""
        return self._end(lambda: self.read(0.05))

    def _end(self, wait):
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until:
            wait()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return status
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError("it does not end")
