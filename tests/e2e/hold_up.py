"""hold_up.py DIR COMMAND: holds up whoever opens the first file that a listing of DIR has; then COMMAND is run, and it goes on.

A lease of the kernel's on that file does it. Says "held" once it holds; exits with 77 where no lease is to be had.
"""
import fcntl
import os
import signal
import subprocess
import sys

folder, command = sys.argv[1:3]
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])
first = next(e.path for e in os.scandir(folder) if e.is_file(follow_symlinks=False))
file = os.open(first, os.O_RDWR)
try:
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
except OSError:
    sys.exit(77)
print("held", flush=True)
if not signal.sigtimedwait([signal.SIGIO], 60):
    sys.exit("nobody came")
os.environ["HELD"] = os.path.basename(first)
status = subprocess.call(["sh", "-c", command], cwd=folder)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
sys.exit(status)
