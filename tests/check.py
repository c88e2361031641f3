#!/usr/bin/env python3
"""check.py [--all] [--slice N|all] [--record] [--list] [NAME...] - builds what the tests need and runs them.

Without arguments (`make check`): lint, all unit tests with sanitizers, the simulator, the replay of the fuzzers' inputs, and
of the end-to-end cases the core set and one slice of eight. The core set is what tests/core.txt lists and the first test of
each row of the table about money in tests/README.md. The slice follows from the commit's number, so that eight commits in a row cover all.
--all (`make check-all`): every case, with sanitizers; unit tests under valgrind too; searching fuzzers.
NAME (`make check T=NAME`): these alone, e.g. client/t_long_paths, unit/test_core, agent_batches/test_out; what begins so if there is
no such name.
--list: prints the end-to-end cases that would run, each with its slice, or "core".
--record: writes how long each case took to tests/times.txt, from which the order is taken: the longest first.

A case that fails runs once more, alone, at the end. One that passes then is flaky: it is listed, and more than three fail the
check. The last line is "N passed, N failed, N skipped"; the line above it says what this tier did not run. Logs: build/check/, or CHECK_LOGS.

What a case starts belongs to this process, even when its parent dies first (PR_SET_CHILD_SUBREAPER); when the check ends or
is stopped, it kills all of it, and removes the mounts and files below its own temporary folder.
"""

import argparse
import concurrent.futures
import ctypes
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LOGS = os.environ.get("CHECK_LOGS", "build/check")
TIMES = "tests/times.txt"
CORE = "tests/core.txt"
TABLE = "tests/README.md"
SLICES = 8
FLAKY_MAX = 3
RETRIES_MAX = 12
CPUS = os.cpu_count() or 1
LANES_LEAST, LANES_MOST = 2 * CPUS, 8 * CPUS
CASE_LIMIT_S = 900
PR_SET_CHILD_SUBREAPER = 36
# These start real servers, pods or thousands of children: valgrind is left out there. test_local_forward has too few files:
# where accept() is to fail for lack of one, valgrind closes the connection that the kernel has accepted. test_requests_worlds takes
# 200,000 random turns: a quarter of an hour.
NOT_UNDER_VALGRIND = {"test_local_ends", "test_local_files", "test_local_forward", "test_local_rent", "test_ssh", "test_ssh_keys", "test_ssh_lost",
                      "test_child", "test_agent_archive", "test_join", "test_requests_worlds"}
VALGRIND = ["env", "IN_VALGRIND=1", "valgrind", "-q", "--error-exitcode=98", "--leak-check=full",
            "--errors-for-leak-kinds=definite", "--child-silent-after-fork=yes", "--suppressions=tests/unit/valgrind.supp"]
ASAN = {"ASAN_OPTIONS": "detect_leaks=1:exitcode=99"}
# Scripts with neither t_ nor c_ functions: each is one case.
WHOLE = {"modal_proto", "runpod_schema", "vast_schema"}
# A script vendor_X.sh is the script X of each of these.
VENDORS = ("modal", "runpod", "vast", "kubernetes")
# A vendor for which only some of them make sense: a cluster's API is a command.
ONLY_OF = {"kubernetes": ("vendor_kill.sh",)}
# Scripts of the pod's side, whose tests are functions test_NAME and which run one of them when ONLY names it.
POD_SIDE = re.compile(r"(agent(?!_files)|start_script)(?!_lib)(_[a-z]+)?\.sh")
NOT_CASES = re.compile(r"(lib|cli|agent_files|espeak_worker|ntfy_server|.*_lib)\.sh")


@dataclasses.dataclass
class Case:
    name: str
    command: list
    env: dict = dataclasses.field(default_factory=dict)
    reads: str = "lines"  # how its log is counted: lines, cmocka, unittest, status
    busy: bool = False    # computes all the time: runs beside the others at low priority
    wants: str = ""       # the build that it needs: release, asan, "" for none
    limit_s: int = CASE_LIMIT_S
    seconds: float = 0.0  # by tests/times.txt
    builds: str = ""      # a build that is there once this case has passed

    @property
    def log(self):
        return f"{LOGS}/{self.name.replace('/', '.')}.log"


@dataclasses.dataclass
class Result:
    case: Case
    passed: int
    failed: int
    skipped: list
    why: str
    seconds: float


# ---- what there is to run ----

def script_cases(script, vendor, burst):
    """The cases of an end-to-end script, by asking it."""
    name = os.path.splitext(os.path.basename(script))[0]
    named = {"VENDOR": vendor} if vendor else {}
    if vendor:
        name = name.replace("vendor", vendor)
    if name in WHOLE: # which need the requests of a unit test, not burst
        yield Case(name, ["bash", script], wants="asan", env={"BURST": f"{ROOT}/build/asan/burst", **ASAN})
        return
    names = subprocess.run(["bash", script], env={**os.environ, **named, "LIST": "1"}, check=True, capture_output=True, text=True,
                           stdin=subprocess.DEVNULL).stdout.split()
    for case in names:
        yield Case(f"{name}/{case}", ["bash", script, case], wants="release",
                   env={"BURST": f"{ROOT}/{burst_for(case, burst)}", "CHECKING": "1", **named})


def burst_for(case, burst):
    """A false clock and the sanitizers do not go together."""
    return "build/burst" if "clock" in case else burst


def end_to_end(burst):
    scripts = [(f"{folder}/{file}", vendor) for folder in ("tests/e2e", "tests/security") for file in sorted(os.listdir(folder))
               if file.endswith(".sh") and not NOT_CASES.fullmatch(file) and not POD_SIDE.fullmatch(file)
               for vendor in (VENDORS if file.startswith("vendor_") else ("",)) if file in ONLY_OF.get(vendor, (file,))]
    with concurrent.futures.ThreadPoolExecutor(CPUS) as pool:
        for cases in pool.map(lambda script: list(script_cases(*script, burst)), scripts):
            yield from cases


def pod_side():
    agent = f"{ROOT}/build/asan/burst-agent"
    for script in sorted(file[:-3] for file in os.listdir("tests/e2e") if POD_SIDE.fullmatch(file)):
        with open(f"tests/e2e/{script}.sh", encoding="utf-8") as f:
            names = re.findall(r"^test_([a-z0-9_]+)\(\) \{", f.read(), re.M)
        for name in names:
            for shell in ("dash", "busybox", "bash") if script.startswith("start_script") else ("",):
                yield Case(f"{script}/test_{name}{'.' + shell if shell else ''}", ["sh", f"tests/e2e/{script}.sh"], wants="asan",
                           env={"ONLY": name, "AGENT": agent, "SHELLS": shell, **ASAN})
    yield Case("agent_files", ["sh", "tests/e2e/agent_files.sh"], wants="asan",
               env={"BOOTSTRAP": f"{ROOT}/build/asan/e2e/kit_print", **ASAN})
    yield Case("espeak_worker", ["sh", "tests/e2e/espeak_worker.sh"], env={"KIT_PRINT": f"{ROOT}/build/asan/e2e/kit_print", **ASAN},
               wants="asan")


def unit_names():
    return sorted(f[:-2] for f in os.listdir("tests/unit") if f.startswith("test_") and f.endswith(".c"))


def python_tests():
    return sorted(f[:-3] for f in os.listdir("tests/workers") if f.startswith("test_") and f.endswith(".py"))


def fuzzers():
    return sorted(f[5:-2] for f in os.listdir("tests/fuzz") if f.startswith("fuzz_") and f.endswith(".c"))


def make(*words):
    return ["make", "--no-print-directory", f"-j{CPUS}", *words]


def build_steps(everything):
    asan = ["unit-build", "replay-build", "build/asan/burst", "build/asan/burst-agent", "build/asan/e2e/kit_print"]
    if everything:
        asan += ["build/asan/tests/sim"]
    yield Case("build/release", make("BUILD=build", "all", "sim", "podbox", "e2e-tools"), reads="status", builds="release", busy=True)
    yield Case("build/asan", make("BUILD=build/asan", "SANITIZE=1", *asan), reads="status", builds="asan", busy=True)
    if everything:
        yield Case("build/unit", make("BUILD=build", "unit-build"), reads="status", builds="unit", busy=True)


def always(everything):
    """What every tier runs whole."""
    yield Case("lint", ["python3", "tests/lint.py"], reads="status", wants="release", busy=True)
    for name in unit_names():
        yield Case(f"unit/{name}", [f"build/asan/unit/{name}"], env=ASAN, reads="cmocka", wants="asan", busy=True)
    for name in python_tests():
        yield Case(f"workers/{name}", ["python3", f"tests/workers/{name}.py"], reads="unittest", busy=True)
    for name in fuzzers():
        yield Case(f"replay/{name}", ["bash", "tests/fuzz/run.sh", "replay", name], wants="asan", env=ASAN, busy=True)
    yield Case("cli", ["sh", "tests/e2e/cli.sh", "build/asan/burst"], env={"TERM": "dumb", **ASAN}, reads="status", wants="asan", busy=True)
    seeds = 50000 if everything else 20000
    yield Case("sim/schedules", ["build/tests/sim", "--seeds", str(seeds)], reads="status", wants="release", busy=True)
    yield Case("sim/planted", ["build/tests/sim", "--plants", "--seeds", "40000"], reads="status", wants="release", busy=True)


def only_in_all():
    yield Case("sim/sanitizers", ["build/asan/tests/sim", "--seeds", "2000", "--from", "50001"], env=ASAN, reads="status", wants="asan", busy=True)
    for name in unit_names():
        if name not in NOT_UNDER_VALGRIND:
            yield Case(f"valgrind/{name}", [*VALGRIND, f"build/unit/{name}"], reads="cmocka", wants="unit", busy=True)
    yield Case("fuzzers", make("fuzz", "FUZZ_SECONDS=15"), reads="status", busy=True)


# ---- which of them ----

def slice_of(name):
    return zlib.crc32(name.encode()) % SLICES


def git(*words):
    result = subprocess.run(["git", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return result.stdout.strip() if result.returncode == 0 else ""


def slice_of_commit():
    """By the commit's number in its history; where that is cut off, by its hash."""
    if git("rev-parse", "--is-shallow-repository") == "false":
        return int(git("rev-list", "--count", "--first-parent", "HEAD") or 0) % SLICES
    return int(git("rev-parse", "HEAD")[:8] or "0", 16) % SLICES


def core_names():
    """tests/core.txt, and the first test of each row of the table about money."""
    names = set()
    with open(CORE, encoding="utf-8") as f:
        for line in f:
            names.update(line.partition("#")[0].split()[:1])
    with open(TABLE, encoding="utf-8") as f:
        table = re.search(r"^### What can cost money$(.*?)(?=^##|\Z)", f.read(), re.M | re.S)
    if not table:
        sys.exit(f'check: {TABLE} has no table "What can cost money"')
    for row in table[1].splitlines():
        names.update(re.findall(r"`([a-z_]+/[tc]_[a-z0-9_]+)`", row.split("|")[-2] if row.count("|") > 3 else "")[:1])
    return names


def read_times():
    try:
        with open(TIMES, encoding="utf-8") as f:
            return {name: float(s) for s, name in (line.split() for line in f if line.strip() and line[0] != "#")}
    except FileNotFoundError:
        return {}


def write_times(results, whole):
    times = read_times()
    times.update({r.case.name: r.seconds for r in results if not r.failed and not r.case.builds})
    known = {r.case.name for r in results} | (set() if whole else set(times))
    with open(TIMES, "w", encoding="utf-8") as f:
        f.write("# seconds that each case took at its last recorded run (make check-all RECORD=1); the longest run first\n")
        for name in sorted(known & set(times)):
            f.write(f"{times[name]:6.1f} {name}\n")


# ---- running ----

class Runner:
    def __init__(self, temp):
        self.temp = temp
        self.began = time.monotonic()
        self.running = {}
        self.started = 0
        self.built = {""}
        self.results = []
        self.busy_before = None
        self.use = self.queue = 0.0

    def note(self, text):
        print(f"{time.monotonic() - self.began:4.0f}s  {text}", flush=True)

    def start(self, case):
        # short names: the path of a Unix socket has room for 107 bytes, and names of cases are long
        self.started += 1
        folder = f"{self.temp}/{self.started}"
        os.mkdir(folder, 0o711)
        env = {**os.environ, **case.env, "TMPDIR": folder}
        for name in ("LIST", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
            env.pop(name, None)
        with open(case.log, "wb") as log:
            process = subprocess.Popen(case.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True,
                                       preexec_fn=lambda: prepare_child(case))
        process.returncode = 0  # reaped here, not by subprocess
        self.running[process.pid] = (case, time.monotonic(), folder)

    def reap(self):
        """Collects what ended, orphans of cases included; returns the cases that ended with their exit status."""
        ended = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid in self.running:
                case, began, folder = self.running.pop(pid)
                ended.append((case, os.waitstatus_to_exitcode(status), time.monotonic() - began))
                shutil.rmtree(folder, ignore_errors=True)
        for pid, (case, began, _) in list(self.running.items()):
            if time.monotonic() - began > case.limit_s:
                with open(case.log, "a", encoding="utf-8") as log:
                    log.write(f"\nFAILED {case.name}: it took longer than {case.limit_s} s\n")
                kill_tree(pid)
        return ended

    def look_at_processors(self):
        """Smoothed: the share of all processors that work of ordinary priority takes, and how many processes wait for one."""
        with open("/proc/stat", encoding="ascii") as f:
            lines = f.read()
        user, nice, system, idle, iowait, *rest = map(int, lines.split("\n", 1)[0].split()[1:9])
        busy, total = user + system + sum(rest), sum((user, nice, system, idle, iowait, *rest))
        if self.busy_before and total > self.busy_before[1]:
            self.use = 0.7 * self.use + 0.3 * (busy - self.busy_before[0]) / (total - self.busy_before[1])
        self.busy_before = (busy, total)
        self.queue = 0.7 * self.queue + 0.3 * int(re.search(r"^procs_running (\d+)", lines, re.M)[1])

    def has_room(self):
        """One more case can start without making those that run miss their deadlines."""
        return self.use < 0.8 and self.queue < 3 * CPUS

    def run(self, cases, lanes=None):
        waiting = sorted((c for c in cases if not c.busy), key=lambda c: -c.seconds)
        busy = [c for c in cases if c.busy]
        results = []
        while waiting or busy or self.running:
            signal.sigtimedwait({signal.SIGCHLD}, 0.25)
            for case, status, seconds in self.reap():
                result = count(case, status, seconds)
                results.append(result)
                if case.builds and not result.failed:
                    self.built.add(case.builds)
                if result.failed or case.reads == "status" or "/" not in case.name:
                    self.note(f"{'FAILED: ' if result.failed else ''}{case.name}{': ' + result.why if result.failed else ''}")
                if case.builds and result.failed:
                    return results
            self.fill(waiting, busy, lanes)
        return results

    def fill(self, waiting, busy, lanes):
        building = any(c.builds for c, _, _ in self.running.values())
        self.look_at_processors()
        if not building:
            beside = sum(c.busy for c, _, _ in self.running.values())
            ready = [c for c in busy if c.wants in self.built]
            for case in ready[:max(0, CPUS - beside)]:
                if case.builds and beside:
                    break
                busy.remove(case)
                self.start(case)
                beside += 1
                if case.builds:
                    break
        at_once = sum(not c.busy for c, _, _ in self.running.values())
        ready = [c for c in waiting if c.wants in self.built]
        most = lanes or LANES_MOST
        # more than the least only while processors are idle, one at a time, so that its load shows before the next
        least = min(most, LANES_LEAST)
        room = least - at_once if at_once < least else int(at_once < most and self.has_room())
        for case in ready[:room]:
            waiting.remove(case)
            self.start(case)


def read_log(case):
    with open(case.log, encoding="utf-8", errors="replace") as f:
        return f.read()


def count(case, status, seconds):
    """What a log says: lines "ok ...", "FAILED ...", "skip ..." (also "ok:", "not ok:"), cmocka's totals, or the exit status alone."""
    log = read_log(case)
    skipped, failed = [], 0
    if case.reads == "status":
        passed = int(status == 0)
    elif case.reads == "unittest":
        ran, failed = (sum(map(int, re.findall(pattern, log, re.M))) for pattern in (r"^Ran (\d+) tests? in", r"^FAILED .*?failures=(\d+)"))
        failed += sum(map(int, re.findall(r"^FAILED .*?errors=(\d+)", log, re.M)))
        skipped = [f"{case.name}.{name}: {why}" for name, why in re.findall(r"^(\w+) \(.*\) ?\.\.\. skipped ['\"](.*)['\"]$", log, re.M)]
        passed = max(0, ran - failed - len(skipped))
    elif case.reads == "cmocka":
        totals = {word: sum(map(int, re.findall(rf"^\[  {word} *\] (\d+) test", log, re.M))) for word in ("PASSED", "FAILED", "SKIPPED")}
        passed, failed = totals["PASSED"], totals["FAILED"]
        skipped = [f"{case.name}.{name}: the unit test says so" for name in sorted(set(re.findall(r"^\[  SKIPPED \] ([a-z_]\w*)$", log, re.M)))]
    else:
        passed = len(re.findall(r"^ok[ :]", log, re.M))
        skipped = re.findall(r"^skip(?:ped:)? (.*)", log, re.M)
        failed = len(re.findall(r"^(?:FAILED|not ok:?) ", log, re.M))
        if not passed and not failed and not skipped:
            failed = 1
    if status != 0 and not failed:
        failed = 1
    why = ""
    if failed:
        found = re.search(r"^(?:FAILED|not ok).*", log, re.M) or re.search(r".*(?:FAILED|[Ee]rror|Sanitizer).*", log)
        why = f"{found[0].strip()[:300] if found else f'exit {status}'} (see {case.log})"
    return Result(case, passed, failed, skipped, why, seconds)


def prepare_child(case):
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    if case.busy and case.builds != "release": # nothing runs beside that build
        os.nice(19)


# ---- leaving nothing behind ----

def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(p) for p in f.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(pid):
    found = []
    for child in children_of(pid):
        found += [child, *descendants(child)]
    return found


def kill_tree(pid):
    for p in (*descendants(pid), pid):
        try:
            os.kill(p, signal.SIGKILL)
        except ProcessLookupError:
            pass


def end_all():
    """Kills whatever any case started, until none is left: an orphan becomes a child of this process."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        left = descendants(os.getpid())
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.02)
    print("check: processes that do not end: " + " ".join(map(str, descendants(os.getpid()))), file=sys.stderr)


def unmount_below(folder):
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as f:
        points = [line.split()[1].replace("\\040", " ") for line in f]
    for point in sorted((p for p in points if p.startswith(folder + "/")), reverse=True):
        subprocess.run(["umount", "-l", point], stdin=subprocess.DEVNULL, check=False)


def clean_up(temp):
    end_all()
    unmount_below(temp)
    # a pod's files may be read-only, or in folders that nobody may enter
    subprocess.run(["chmod", "-R", "u+rwX", temp], stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(temp, ignore_errors=True)


class Stopped(Exception):
    pass


def on_signal(number, _frame):
    raise Stopped(number)


# ---- the whole of it ----

def chosen(options):
    """The cases to run, and a sentence on what is left out."""
    burst = "build/asan/burst" if options.all else "build/burst"
    cases = [*end_to_end(burst), *pod_side()]
    if options.all:
        for case in cases:
            case.wants = "asan" if case.wants == "release" else case.wants
            case.env = {**ASAN, **case.env}
    whole = [*always(options.all), *(only_in_all() if options.all else ())]
    names = {c.name for c in cases}
    core = core_names()
    unknown = sorted(n for n in core if n not in names)
    if unknown:
        sys.exit(f"check: {CORE} or the rows about money in {TABLE} name what is no case: {' '.join(unknown)}")
    if options.names:
        return pick(cases + whole + list(only_in_all()) * (not options.all), options.names), ""
    if options.all:
        return cases + whole, "not run in this tier: nothing"
    here = slice_of_commit() if options.slice is None else options.slice
    kept = [c for c in cases if here == "all" or c.name in core or slice_of(c.name) == here]
    text = (f"not run in this tier: {len(cases) - len(kept)} of {len(cases)} end-to-end cases (ran: {sum(c.name in core for c in kept)} "
            f"of the core, slice {here} of 0..{SLICES - 1}), these with sanitizers, valgrind, searching fuzzers, the simulator "
            "beyond 20,000 seeds: make check-all")
    return kept + whole, text


def pick(cases, names):
    """Those that are named; what begins so, where there is no such name."""
    picked = []
    for name in names:
        found = [c for c in cases if c.name == name] or [c for c in cases if c.name.startswith(name)]
        if not found:
            sys.exit(f'check: there is no test "{name}"; for example: client/t_long_paths, unit/test_core, sim, lint')
        picked += [c for c in found if c not in picked]
    return picked


def needed_builds(cases, everything):
    wanted = {c.wants for c in cases}
    if "asan" in wanted and any(c.env.get("BURST") for c in cases):
        wanted.add("release")  # stand-ins and kill tools
    rare = {c.name for c in only_in_all()}
    steps = list(build_steps(everything or any(c.name in rare for c in cases)))
    return [s for s in steps if s.builds in wanted or s.builds == "release"]


def check(options, runner):
    cases, left_out = chosen(options)
    times = read_times()
    for case in cases:
        case.seconds = times.get(case.name, 5.0)
    results = runner.run(needed_builds(cases, options.all) + cases)
    if any(r.case.builds and r.failed for r in results):
        runner.note("the build failed: no test can run")
    # once more, alone
    flaky = []
    for result in [r for r in results if r.failed and not r.case.builds][:RETRIES_MAX]:
        if result.case.wants not in runner.built:
            continue
        again = runner.run([dataclasses.replace(result.case, name=result.case.name)], lanes=1)[0]
        if not again.failed:
            results[results.index(result)] = again
            flaky.append((result.case.name, result.why))
    if options.record:
        write_times(results, options.all or options.slice == "all" and not options.names)
    report(results, flaky, left_out, runner)
    return 1 if any(r.failed for r in results) or len(flaky) > FLAKY_MAX else 0


def report(results, flaky, left_out, runner):
    by_reason = {}
    for result in results:
        for text in result.skipped: # "NAME: why", or only why
            named = re.match(r"([\w./]+): (.*)", text)
            by_reason.setdefault(named[2] if named else text, []).append(named[1] if named else result.case.name)
    for reason, names in sorted(by_reason.items()):
        print(f"skipped: {reason}: {', '.join(sorted(names)[:6])}{' ...' if len(names) > 6 else ''} ({len(names)})")
    for result in results:
        if result.failed:
            print(f"FAILED: {result.case.name}: {result.why}")
    for name, why in flaky:
        print(f"flaky: {name}: passed at its second try; first: {why}")
    failed = sum(r.failed for r in results)
    if len(flaky) > FLAKY_MAX:
        print(f"{len(flaky)} flaky cases: more than {FLAKY_MAX} fail the check")
        failed += len(flaky)
    runner.note("end")
    if left_out:
        print(left_out)
    print(f"{sum(r.passed for r in results)} passed, {failed} failed, {sum(len(r.skipped) for r in results)} skipped", flush=True)


def slice_number(text):
    if text == "all":
        return text
    number = int(text)
    if not 0 <= number < SLICES:
        raise ValueError
    return number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--slice", type=slice_number)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    os.chdir(ROOT)
    if options.list:
        core = core_names()
        for case in chosen(options)[0]:
            if not case.busy:
                print("core" if case.name in core else slice_of(case.name), case.name)
        return 0
    shutil.rmtree(LOGS, ignore_errors=True)
    os.makedirs(LOGS)
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("check: this kernel has no PR_SET_CHILD_SUBREAPER")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    temp = tempfile.mkdtemp(prefix="bc-")
    os.chmod(temp, 0o711) # some cases run as another user
    try:
        return check(options, Runner(temp))
    except Stopped as stopped:
        print("check: stopped", file=sys.stderr)
        return 128 + stopped.args[0]
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        clean_up(temp)


if __name__ == "__main__":
    sys.exit(main())
