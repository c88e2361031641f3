#!/usr/bin/env python3
"""terminal.py COLUMNSxROWS [STEP...] -- COMMAND... - runs a command on a terminal that is emulated here, and looks at its screen.

The emulator knows what `burst` sends (text, colours, cursor movement, erasing) and what the line discipline adds; anything
else is an error. Lines that no longer fit are wrapped when the terminal is made narrower, as tmux and most terminals do.

Steps, in this order:
  expect:REGEX     wait (60 s at most) until the screen has it
  shot:FILE        write the screen to FILE, without blanks at the ends
  color:FILE       the same with colours, as an SGR number before each run of cells: "{32}working{0}"
  svg:FILE         the screen as a picture
  size:COLxROW     the user changes the size of the window
  send:TEXT        the user types it; \\x03 is Ctrl-C
  pause:SECONDS    the terminal goes on for so long
  end              wait until the command has ended; its exit status becomes ours
  once:REGEX       from now on no more than one line of all that was ever printed may have it (copies left behind by a redraw)
"""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
import unicodedata

import terminal_svg

WAIT_S = 60
QUIET_S = 0.03


class Unknown(Exception):
    """The command sent what this terminal does not know."""


def width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Terminal:
    """A screen of cells (character, colour), the lines that scrolled away, and the cursor."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.lines: list[list[tuple[str, str]]] = [[]]
        self.wrapped: list[bool] = [False]  # the next line continues this one
        self.top = 0  # the first line on the screen
        self.row, self.column = 0, 0  # row: among all lines
        self.color = "0"
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.escape = ""

    # ---- what is there ----

    def screen(self) -> list[str]:
        return [self.text(i) for i in range(self.top, self.top + self.rows)]

    def text(self, i: int) -> str:
        return "".join(c for c, _ in self.lines[i]).rstrip() if i < len(self.lines) else ""

    def colored(self) -> list[str]:
        out = []
        for i in range(self.top, self.top + self.rows):
            line, now = "", "0"
            for char, color in self.lines[i] if i < len(self.lines) else []:
                line += ("" if color == now else "{%s}" % color) + char
                now = color
            out.append((line + ("" if now == "0" else "{0}")).rstrip())
        return out

    # ---- what comes ----

    def feed(self, data: bytes) -> None:
        for char in self.decoder.decode(data):
            if self.escape or char == "\x1b":
                self.escape += char
                self.take_escape()
            elif char == "\r":
                self.column = 0
            elif char == "\n":
                self.line_feed(False)
            elif char == "\b":
                self.column = max(self.column - 1, 0)
            elif char < " " and char != "\a":
                raise Unknown(repr(char))
            elif char != "\a":
                self.put(char)

    def put(self, char: str) -> None:
        size = width(char)
        if self.column + size > self.columns:
            self.line_feed(True)
            self.column = 0
        line = self.lines[self.row]
        line.extend([(" ", "0")] * (self.column - len(line)))
        line[self.column:self.column + size] = [(char, self.color)] + [("", self.color)] * (size - 1)
        self.column += size

    def line_feed(self, wrapped: bool) -> None:
        self.wrapped[self.row] = wrapped
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])
            self.wrapped.append(False)
        self.top = max(self.top, self.row - self.rows + 1)

    def take_escape(self) -> None:
        match = re.fullmatch(r"\x1b\[([0-9;]*)([A-Za-z])", self.escape)
        if not match:
            if not re.fullmatch(r"\x1b(\[[0-9;]*)?", self.escape):
                raise Unknown(repr(self.escape))
            return
        self.escape = ""
        number, what = match[1], match[2]
        if what == "m":
            self.color = number or "0"
        elif what == "A":
            self.row = max(self.row - int(number or 1), self.top)
        elif what == "K" and number == "2":
            self.lines[self.row] = []
            self.wrapped[self.row] = False
        elif what == "J" and number in ("", "0"):
            del self.lines[self.row][self.column:]
            del self.lines[self.row + 1:], self.wrapped[self.row + 1:]
        else:
            raise Unknown(repr(match[0]))

    def resize(self, columns: int, rows: int) -> None:
        lines: list[list[tuple[str, str]]] = []
        wrapped: list[bool] = []
        row = 0
        joined: list[tuple[str, str]] = []
        offset = 0  # of the cursor's line within what is joined
        for i, line in enumerate(self.lines):
            if i == self.row:
                offset = len(joined) + self.column
                row = -1
            joined += line
            if self.wrapped[i]:
                continue
            if row < 0:
                row = len(lines) + offset // columns
            pieces = [joined[n:n + columns] for n in range(0, max(len(joined), 1), columns)]
            lines += pieces
            wrapped += [True] * (len(pieces) - 1) + [False]
            joined = []
        while len(lines) <= row:
            lines.append([])
            wrapped.append(False)
        self.lines, self.wrapped, self.row = lines, wrapped, row
        self.column = min(self.column, columns - 1)
        self.columns, self.rows = columns, rows
        self.top = max(min(len(lines) - rows, row), row - rows + 1, 0)


class Session:
    """A command on a terminal."""

    def __init__(self, terminal: Terminal, command: list[str]) -> None:
        self.terminal = terminal
        self.once: list[str] = []
        self.status: int | None = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            self.set_size(sys.stdin.fileno())
            os.execvp(command[0], command)
        self.set_size(self.fd)

    def set_size(self, fd: int) -> None:
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", self.terminal.rows, self.terminal.columns, 0, 0))

    def resize(self, columns: int, rows: int) -> None:
        self.terminal.resize(columns, rows)
        self.set_size(self.fd)

    def turn(self, timeout_s: float) -> bool:
        """Reads what is there. False: nothing came in this time, or the command has closed the terminal."""
        if self.status is not None or not select.select([self.fd], [], [], timeout_s)[0]:
            self.check_once()
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # EIO: its last process has ended
            data = b""
        if not data:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            return False
        self.terminal.feed(data)
        return True

    def check_once(self) -> None:
        for pattern in self.once:
            found = [self.terminal.text(i) for i in range(len(self.terminal.lines)) if re.search(pattern, self.terminal.text(i))]
            if len(found) > 1:
                raise SystemExit(f"terminal: {len(found)} lines have {pattern!r}:\n" + "\n".join(map(self.terminal.text, range(len(self.terminal.lines)))))

    def expect(self, pattern: str) -> None:
        until = time.monotonic() + WAIT_S
        while not re.search(pattern, "\n".join(self.terminal.screen())):
            came = self.turn(QUIET_S)
            if not came and (self.status is not None or time.monotonic() > until):
                raise SystemExit(f"terminal: no {pattern!r} on the screen:\n" + "\n".join(self.terminal.screen()))

    def settle(self) -> None:
        while self.turn(QUIET_S):
            pass

    def pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self.status is None and time.monotonic() < until:
            self.turn(QUIET_S)

    def end(self) -> None:
        while self.status is None:
            self.turn(WAIT_S)

    def kill(self) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def size_of(text: str) -> tuple[int, int]:
    columns, rows = text.split("x")
    return int(columns), int(rows)


def write(path: str, lines: list[str]) -> None:
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


def play(session: Session, step: str) -> None:
    name, _, what = step.partition(":")
    if name == "expect":
        session.expect(what)
    elif name == "shot":
        session.settle()
        write(what, session.terminal.screen())
    elif name == "color":
        session.settle()
        write(what, session.terminal.colored())
    elif name == "svg":
        session.settle()
        shown = session.terminal.lines[session.terminal.top:]
        write(what, terminal_svg.svg(shown, session.terminal.columns, "the live view of burst run").splitlines())
    elif name == "size":
        session.settle()
        session.resize(*size_of(what))
    elif name == "send":
        os.write(session.fd, what.encode().decode("unicode_escape").encode())
    elif name == "pause":
        session.pause(float(what))
    elif name == "end":
        session.end()
    elif name == "once":
        session.once.append(what)
    else:
        raise SystemExit(f"terminal: unknown step {step!r}")


def main() -> int:
    at = sys.argv.index("--")
    session = Session(Terminal(*size_of(sys.argv[1])), sys.argv[at + 1:])
    try:
        for step in sys.argv[2:at]:
            play(session, step)
    except Unknown as unknown:
        raise SystemExit(f"terminal: unknown sequence {unknown}") from None
    finally:
        session.kill()
    return 0 if session.status is None else session.status if session.status >= 0 else 128 - session.status


if __name__ == "__main__":
    sys.exit(main())
