#!/usr/bin/env python3
"""lint.py - the rules that no compiler checks: which folder may include which, which place may use which third-party
library, how comments are written, what the pages name; then portability (musl's headers, clang) and
shellcheck. Compilers and shellcheck run in parallel, one process per core. Prints "lint: fine", or one line per finding and exits with 1."""

import concurrent.futures
import glob
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

import named
import strings
import tree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP_LEVEL = {"Makefile", "LICENSE", "README.md", "cmd", "orchestrator", "providers", "jobs", "config", "tests"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)

# Layers that a layer may include besides itself; "providers/*" is each provider's own folder, "vendors" what providers share whose
# vendor is a command or an HTTP API, "agent" the program for pods (all of jobs/agent but kit.c, which carries it), "speaker" the
# worker that speaks by espeak-ng.
MAY_INCLUDE = {
    "cmd": {"*"},
    "providers": {"providers/*", "base", "contract"},
    "vendors": {"base", "contract"},
    "providers/*": {"vendors", "base", "contract"},
    "jobs": {"base", "contract"},
    "agent": {"base"},
    "speaker": {"agent", "base"},
    "config": {"base", "contract"},
    "contract": {"base"},
    "core": {"plan", "base", "contract"},
    "plan": {"base", "contract"},
    "net": {"base", "contract"},
    "sync": {"base"},
    "store": {"base"},
    "engine": {"plan", "core", "net", "sync", "store", "base", "contract"},
    "runs": {"engine", "plan", "core", "net", "sync", "store", "base", "contract"},
    "unattended": {"runs", "engine", "plan", "core", "net", "sync", "store", "base", "contract"},
}
# The rooms of cmd/: each may include those before it.
ROOMS = ["show", "unattended", "launch", "line"]
# A pattern of system includes, and the only places that may have them.
ONLY_IN = [
    (r"curl/", ["orchestrator/net/http"]),
    (r"libssh2", ["orchestrator/net/ssh"]),
    (r"sqlite3", ["orchestrator/store/"]),
    (r"libconfig", ["config/setting", "config/parse.c", "config/state.h"]),
    (r"openssl/", ["orchestrator/base/crypto.c"]),
    (r"archive(_entry)?\.h", ["orchestrator/sync/pack.c", "jobs/text/zip.c"]),
    (r"md4c", ["jobs/text/markdown.c"]),
    (r"libxml/", ["jobs/text/xml_library.h"]),
    (r"zlib\.h", ["providers/vast/rent.c", "jobs/tts/zip_out.c"]),
    (r"(linux/)?seccomp\.h", ["providers/local/lockdown.c"]),
    (r"(protobuf-c/|modal\.pb-c)", ["providers/modal/"]),
    # Linux-only calls stay with the local provider and with programs for pods, and behind #ifdef in base/guard.c.
    (r"sys/(epoll|signalfd|eventfd|timerfd|inotify|sendfile|prctl|mount|pidfd)\.h",
     ["providers/local/", "jobs/agent/", "jobs/workers/", "orchestrator/base/guard.c"]),
]
CORE_IO = re.compile(r"\b(clock_(boot|wall)_ms|time|gettimeofday|fopen|open|read|write|socket|rand|random_(bytes|u64|hex))\(")
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", '-DBURST_VERSION="lint"', "-Wall", "-Wextra", "-Werror", "-Wshadow",
         "-Wstrict-prototypes", "-Wno-missing-field-initializers", "-I.", "-Iorchestrator", "-fsyntax-only"]
PACKAGES = ["libcurl", "libssh2", "jansson", "libconfig", "sqlite3", "libcrypto", "libarchive", "libprotobuf-c", "md4c", "libxml-2.0", "zlib"]
POSIX_FILES = ["orchestrator/base/{mem,err,str,clock,path,section,pattern,guard}.c", "orchestrator/core/*.c", "orchestrator/plan/*.c",
               "orchestrator/provider.c", "orchestrator/net/{loop,pool,child*,grpc_wire}.c",
               "orchestrator/sync/{ignore,receive*}.c", "jobs/agent/*.c"]
# These include what only a build generates.
NEEDS_BUILD = {"orchestrator/store/sqlite.c", "jobs/agent/kit.c", "jobs/workers/python.c", "providers/ssh/host.c"}

findings = []


def complain(text):
    findings.append(text)


def expand(pattern):
    """Brace lists, then the shell's wildcards; without those that do not exist."""
    brace = re.search(r"\{([^}]*)\}", pattern)
    if brace:
        return [f for word in brace[1].split(",") for f in expand(pattern.replace(brace[0], word, 1))]
    return sorted(glob.glob(pattern))


# ---- includes ----

def layer(path):
    parts = path.split("/")
    if parts[0] == "providers" and len(parts) > 2:
        return "providers/" + parts[1]
    if re.match(r"providers/(child|web|wired?)\.", path):
        return "vendors"
    if path.startswith("jobs/agent/") and parts[2] not in ("kit.c", "kit.h"):
        return "agent"
    if path.startswith("jobs/workers/espeak"):
        return "speaker"
    if parts[0] == "orchestrator":
        return parts[1] if len(parts) > 2 else "contract"
    return parts[0]


def allowed(source, target):
    if source == target:
        return True
    generic = "providers/*" if source.startswith("providers/") else source
    targets = MAY_INCLUDE.get(generic, set())
    return "*" in targets or target in targets or (target.startswith("providers/") and "providers/*" in targets)


def room(path):
    """The index of a file's room in cmd/; -1: it is in none."""
    parts = path.split("/")
    return ROOMS.index(parts[1]) if parts[0] == "cmd" and len(parts) > 2 else -1


def may_include(path, target):
    if path.startswith("jobs/text/") and target.startswith("jobs/tts/"):
        return False  # a text is read without regard to who speaks it
    return allowed(layer(path), layer(target)) and not room(target) > room(path) >= 0


def resolve(source, name, known):
    for at in (os.path.join(os.path.dirname(source), name), name, os.path.join("orchestrator", name)):
        at = os.path.normpath(at)
        if at in known:
            return at
    return None


def include_name(source, target):
    """How a file includes another: its neighbour by name, others from orchestrator/ or from the top."""
    if os.path.dirname(source) == os.path.dirname(target):
        return os.path.basename(target)
    return target.removeprefix("orchestrator/")


def check_includes():
    files = tree.files("*.c", "*.h")
    known = set(files)
    for path in files:
        text = read(path)
        for kind, name in INCLUDE.findall(text):
            target = resolve(path, name, known) if kind == '"' else None
            if name.endswith(".c"):
                complain(f"{path} includes {name}: link its object")
            if target and name != include_name(path, target):
                complain(f'{path} includes "{name}": write "{include_name(path, target)}"')
        if path.startswith("tests/"):
            continue
        for kind, name in INCLUDE.findall(text):
            for pattern, places in ONLY_IN:
                if re.match(pattern, name) and not path.startswith(tuple(places)):
                    complain(f"{path} includes {name}: that library belongs to {' '.join(places)}")
            target = resolve(path, name, known) if kind == '"' else None
            if target and not may_include(path, target):
                complain(f"{path} includes {target}: {os.path.dirname(path)} may not know {os.path.dirname(target)}")
        if path.startswith("orchestrator/core/") and path.endswith(".c"):
            for number, line in enumerate(text.splitlines(), 1):
                if CORE_IO.search(line):
                    complain(f"{path}:{number}: orchestrator/core does I/O or reads a clock: {line.strip()}")


def object_symbols(path):
    """(names that the object defines, names that it needs)."""
    defines, needs = set(), set()
    for line in subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout.splitlines():
        kind, name = line.split()[-2:]
        if kind.isupper():
            (needs if kind == "U" else defines).add(name)
    return defines, needs


def check_links():
    """What an object needs from another folder's object: a declaration of one's own would hide it from check_includes()."""
    objects = {path: object_symbols(f"build/obj/{path[:-2]}.o") for path in tree.files("*.c")
               if not path.startswith("tests/") and os.path.exists(f"build/obj/{path[:-2]}.o")}
    if not objects:
        complain("nothing is built, so that no object can be looked at (make)")
    # the agent is a program of its own, with names of its own
    agent = {path for path in objects if layer(path) == "agent"}
    owners = {program: {name: path for path in paths for name in objects[path][0]}
              for program, paths in ((True, agent), (False, objects.keys() - agent))}
    for path, (_, needs) in objects.items():
        owner = owners[False] | owners[True] if path in agent else owners[False]
        for name in sorted(needs & owner.keys()):
            if not allowed(layer(path), layer(owner[name])):
                complain(f"{path} uses {name}() of {owner[name]}: {layer(path)} may not know {layer(owner[name])}")


# Exported functions that no other file of the product calls, each with the reason why it stays.
STAYS = {"core_check": "builds with CORE_CHECKED call it after every step"}


def programs():
    """For each source of the product the objects that are built from it, for burst and for the agent. Skips objects older than the source."""
    for path in tree.files("*.c"):
        if not path.startswith("tests/"):
            yield path, [at for at in (f"build/obj/{path[:-2]}.o", *glob.glob(f"build/kit/*/{path[:-2]}.o"))
                         if os.path.exists(at) and os.path.getmtime(at) >= os.path.getmtime(path)]


def code_of(path):
    """A C file's text without its comments."""
    return re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)


def check_unused():
    """The product calls each function that it exports. What a test alone calls is not what users run."""
    exported, used, plain = {}, set(re.findall(r"\w+", read("providers/plugin.syms"))) | {"main"}, []
    prefixes = tuple(name[:-1] for name in re.findall(r"\w+\*", read("providers/plugin.syms")))
    for path, objects in programs():
        if not objects:
            plain.append(path) # part of a program that is compiled in one go
        for built in objects:
            for line in subprocess.run(["nm", built], check=True, capture_output=True, text=True).stdout.splitlines():
                kind, name = line.split()[-2:]
                if kind == "U":
                    used.add(name)
                elif kind == "T":
                    exported.setdefault(name, set()).add(path)
    for path in plain:
        used.update(re.findall(r"\w+", code_of(path)))
    tests = set(re.findall(r"\w+", "".join(read(path) for path in tree.files("tests/*.c", "tests/*.h", "tests/**/*.c", "tests/**/*.h"))))
    for name in sorted(exported.keys() - used - STAYS.keys()):
        if name.startswith(prefixes):
            continue
        path = min(exported[name])
        if len(re.findall(rf"\b{name}\b", code_of(path))) < 2:
            complain(f"{path}: nothing of the product calls {name}(): remove it, and test what the product calls")
        elif name not in tests:
            complain(f"{path}: no other file calls {name}(): make it static")
    for name in sorted(STAYS.keys() & used | STAYS.keys() - exported.keys()):
        complain(f"tests/lint.py: STAYS names {name}, which needs no exception")


LID = 900
# Files under 60 lines that stay, each with the reason. A command of its own (cmd/*.c) needs none.
SMALL = {
    "jobs/registry.c": "the list of the job types",
    "providers/registry.c": "the list of the providers",
    "providers/slurm/lines.c": "what both readers of that folder stand on",
}
# Files that serve one other file of their folder alone, each with the reason why it stays a file.
SERVES_ONE = {
    "jobs/agent/clients.c": "the connections to clients; what they ask for is the loop's",
    "jobs/agent/jobs.c": "slow work on files, a slice in each turn of the loop",
    "jobs/agent/serve.c": "the pod's loop; main.c chooses between it and short commands",
    "jobs/agent/volume.c": "commands that fill, list and free a volume, without the loop",
    "jobs/command/size.c": "measures the input in the user's files; command.c has the job",
    "jobs/text/epub.c": "the reader of books; input.c chooses the reader of a file",
    "jobs/text/gutenberg.c": "what typists and their site put around a text; plain.c knows the layout of a text",
    "jobs/text/markdown.c": "the reader of Markdown; input.c chooses the reader of a file",
    "jobs/text/plain.c": "the reader of plain text; input.c chooses the reader of a file",
    "jobs/text/subtitles_in.c": "the reader of subtitles; input.c chooses the reader of a file",
    "jobs/tts/words.c": "finds those words in the text that is shown; join.c makes the track",
    "jobs/tts/trim.c": "finds the speech in a file; join.c makes the track",
    "jobs/tts/readalong.c": "the pages of an EPUB; encode.c makes the sound",
    "jobs/tts/zip_out.c": "the format of zip files; readalong.c knows what is in a book",
    "jobs/tts/compare.c": "compares two texts word by word; heard.c knows what a job checks",
    "jobs/text/zip.c": "libarchive's zip files; epub.c knows what is in a book",
    "orchestrator/plan/joint_exact.c": "the plan of a few jobs, by every partition; joint.c chooses between it and the search",
    "orchestrator/plan/joint_many.c": "the search for the plan of many jobs",
    "orchestrator/plan/joint_moves.c": "the moves that this search tries",
    "providers/kubernetes/check.c": "the findings and the Role of `burst doctor`, apart from what rents",
    "providers/kubernetes/release.c": "the calls that end a pod, by force where its node is lost",
    "providers/kubernetes/volumes.c": "volumes live longer than pods",
    "providers/modal/rent.c": "the calls that cost money, apart from those that read",
    "providers/runpod/rent.c": "the calls that cost money, apart from those that read",
    "providers/slurm/price.c": "prices and billing units, apart from what reads jobs and offers",
    "providers/slurm/script.c": "the programs that run on the login node, apart from what reads their answers",
    "providers/vast/instances.c": "what becomes of an instance, and what it costs; vast.c has the account",
    "providers/vast/rent.c": "the calls that cost money, apart from those that read",
    "providers/runpod/volumes.c": "volumes live longer than pods and bill by the month",
}


def check_sizes():
    """No file is longer than the lid, and none is a crumb: an idea that one neighbour alone uses belongs into that neighbour."""
    lines, needs, owner = {}, {}, {}
    for path in tree.files("*.c", "*.h"):
        if not path.startswith("tests/"):
            lines[path] = read(path).count("\n")
            if lines[path] > LID:
                complain(f"{path}: {lines[path]} lines: no file has more than {LID}: split it by idea")
    small = {path for path in lines if lines[path] < 60 and path.endswith(".c") and os.path.dirname(path) != "cmd"}
    for path in sorted(small - SMALL.keys()):
        complain(f"{path}: {lines[path]} lines: move it into the file that uses it, or give the reason in SMALL (tests/lint.py)")
    for path, objects in programs():
        for built in objects[:1]:
            defines, needs[path] = object_symbols(built)
            owner |= dict.fromkeys(defines, path)
    users = {}
    for path, names in needs.items():
        for name in names & owner.keys():
            users.setdefault(owner[name], set()).add(path)
    lonely = set()
    for path, by in users.items():
        user = min(by)
        if len(by) == 1 and os.path.dirname(user) == os.path.dirname(path) != "cmd" and lines[path] + lines[user] <= LID:
            lonely.add(path)
            if path not in SERVES_ONE:
                complain(f"{path}: only {user} uses it: move it there, or give the reason in SERVES_ONE (tests/lint.py)")
    for path in sorted(SMALL.keys() - small):
        complain(f"tests/lint.py: SMALL names {path}, which needs no exception")
    for path in sorted(SERVES_ONE.keys() - lonely):
        complain(f"tests/lint.py: SERVES_ONE names {path}, which needs no exception")


PRINTS = {"puts", "printf", "__printf_chk", "putchar", "putc", "vprintf", "__vprintf_chk", "stdout", "stderr", "exit", "isatty"}


def check_prints():
    """Only commands print, read a terminal or end the program. base/crypto.c and base/section.c say why they abort."""
    for path in tree.files("orchestrator/**/*.c"):
        built = f"build/obj/{path[:-2]}.o"
        if os.path.exists(built) and not path.startswith("orchestrator/base/"):
            for name in sorted(object_symbols(built)[1] & PRINTS):
                complain(f"{path} uses {name}: only cmd/ prints and exits")


def find_circles(needs, what):
    """needs: for each module the others that it needs."""
    done = set()

    def visit(name, way):
        if name in way:
            complain(f"{what}: {' -> '.join(way[way.index(name):] + [name])}")
        elif name not in done:
            for other in sorted(needs.get(name, ())):
                visit(other, way + [name])
            done.add(name)

    for name in sorted(needs):
        visit(name, [])


def check_include_circles(folder):
    """Modules of a folder (x.c and x.h) include each other in one direction alone. A .c file may include impl.h, which
    puts together the parts that the folder's headers declare."""
    needs = {}
    for path in tree.files(f"{folder}/*.c", f"{folder}/*.h"):
        name = os.path.basename(path)[:-2]
        quoted = {include[:-2] for kind, include in INCLUDE.findall(read(path)) if kind == '"' and "/" not in include}
        needs.setdefault(name, set()).update(quoted - ({name, "impl"} if path.endswith(".c") else {name}))
    find_circles(needs, f"{folder}: a circle of includes")


def check_call_circles(folder):
    """Files of a folder call each other in one direction alone."""
    objects = {os.path.basename(path)[:-2]: object_symbols(f"build/obj/{path[:-2]}.o") for path in tree.files(f"{folder}/*.c")
               if os.path.exists(f"build/obj/{path[:-2]}.o")}
    owner = {symbol: name for name, (defines, _) in objects.items() for symbol in defines}
    find_circles({name: {owner[symbol] for symbol in needs & owner.keys()} - {name} for name, (_, needs) in objects.items()},
                 f"{folder}: a circle of calls")


def check_parts():
    """Each part of struct epod and struct engine is written by the file that impl.h names beside it, and by no other."""
    parts = re.findall(r"^\t(?:struct )?(\w+) (\w+)(?:\[\w+\])?; +/\* (\w+\.c)[:;]", read("orchestrator/engine/impl.h"), re.M)
    if len(parts) < 12:
        complain("orchestrator/engine/impl.h: its parts do not name the files that write them")
    for kind, name, owner in parts:
        part = rf"(?:\bpods\[[^\]]*\]\.|\b(?:e|p|own)->){name}\b"
        writes = re.compile(rf"{part}[\w.\[\]]*\s*(?:[-+*/|&]?=[^=]|\+\+|--)|(?:\+\+|--|(?:COPY_TEXT|TAKE|GROW|err_set|err_clear|snprintf)\(&?)"
                            rf"[^,;]*{part}|(?<!const )struct {kind} \*\w+ = &[^;]*{part}")
        for path in tree.files("orchestrator/engine/*.c"):
            for number, line in enumerate(read(path).splitlines(), 1):
                if os.path.basename(path) != owner and writes.search(line):
                    complain(f"{path}:{number}: writes {name}, which belongs to {owner}: call a function of it")


def check_vendor_words():
    """What runs on every pod names no vendor: each brings its own end.sh and variables. "ssh" also means the protocol."""
    vendors = {path.split("/")[1] for path in tree.files("providers/*/*.c")} - {"local", "ssh"}
    words = re.compile(rf"(?<![a-z])({'|'.join(sorted(vendors))})(?![a-z])", re.I)
    for path in tree.files("jobs/agent/*.c", "jobs/agent/*.h", "jobs/agent/*.sh"):
        for number, line in enumerate(read(path).splitlines(), 1):
            if words.search(line):
                complain(f"{path}:{number}: names a vendor: that belongs to providers/: {line.strip()}")


def check_openings():
    """Every C file opens with "NAME - what it is for"."""
    for path in tree.files("*.c", "*.h"):
        name = re.escape(os.path.basename(path))
        if not re.match(rf"/\* {name} - ", read(path)):
            complain(f"{path}: the first line is not /* {os.path.basename(path)} - what it is for */")


# a people word hides which part acts, and "can be had" hides what it does
COMMENT_WORDS = re.compile(
    r"\b([Ww]hos?ever|[Nn]obody|[Ss]omebody|[Aa]nybody|[Ee]verybody|[Ww]ho is late|[Pp]eople know|is had|be had|is told|given back"
    r"|(?:is|are|goes?|brings?) home)\b")
# one phrase for each fact of a contract
COMMENT_PHRASES = {"NULL is fine": "accepts NULL", "to be freed": "the caller frees it", "True:": "Returns true if", "False:": "Returns false if"}
COMMENT_PHRASE = re.compile(r"\bNULL is fine\b|\b[Tt]o be freed\b|(?<=/\* )(?:True|False):")


def comment_faults(source):
    """Yields (line, fault) for each comment of a C source that cannot be read alone, or does not name who acts."""
    line = 1
    for token in strings.C_TOKEN.findall(source):
        if token.startswith(("/*", "//")):
            text = re.sub(r"\s*\n[ \t]*(\*(?!/))?[ \t]*", " ", token)
            found = COMMENT_WORDS.search(text)
            if re.match(r"/[*/]+ ?\.\.\.", text):
                yield line, 'the comment begins with "...": make it stand alone'
            if found:
                yield line, f'the comment says "{found[0]}": name the user, client, pod, process or command that acts'
            phrase = COMMENT_PHRASE.search(text)
            if phrase:
                words = phrase[0].replace("To be", "to be")
                yield line, f'the comment says "{words}": write "{COMMENT_PHRASES[words]}"'
        line += token.count("\n")


def check_comments():
    for path in tree.files("*.c", "*.h"):
        if not path.startswith("tests/"):
            for line, fault in comment_faults(read(path)):
                complain(f"{path}:{line}: {fault}")


def check_top_level():
    for top in sorted({path.split("/")[0] for path in tree.files()}):
        if top not in TOP_LEVEL and not top.startswith("."):
            complain(f"{top}: no such top-level entry belongs here")


# ---- what a page says happens is what a named test shows ----

def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def script_text(path, vendor):
    """A script's text, and that of the scripts of tests/cloud which it reads."""
    text = read(path)
    names = re.findall(r'(?:^\. |^for script in )"\$ROOT/(tests/cloud/[a-z/]+(?:\.sh)?"(?:/[a-z*]+\.sh)?)', text.replace("$VENDOR", vendor), re.M)
    return text + "".join(read(file) for name in names for file in sorted(glob.glob(name.replace('"', ""))))


def case_exists(script, name):
    """A function of the script, or a line "+NAME | ..." of a table of cases. vendor_X.sh is the script X of each vendor."""
    vendor = script.partition("_")[0]
    for_each_vendor = re.sub("^(modal|runpod|vast|kubernetes)_", "vendor_", script)
    return any(re.search(rf"(^|[^a-z0-9_]){name}([^a-z0-9_]|$)|^\s*\+{re.sub('^c_', '', name)} \|",
                         script_text(path, vendor), re.M)
               for path in (f"tests/e2e/{script}.sh", f"tests/security/{script}.sh", f"tests/e2e/{for_each_vendor}.sh"))


def is_shown(path, name):
    if path.endswith(".c"):
        return re.search(rf"(cmocka_unit_test[a-z_]*|T)\({re.escape(name)}[,)]", read(path))
    if name.startswith("check "):
        return name + " " in read(path)
    return re.search(rf"^{re.escape(name)}\(\) \{{", read(path), re.M)


def check_named_tests(path):
    """Each test that a page names exists."""
    text = read(path)
    for script, name in sorted(set(re.findall(r"`([a-z_]+)/([tc]_[a-z0-9_]+)`", text))):
        if not case_exists(script, name):
            complain(f"{path} names the test {script}/{name}, which does not exist")
    for test in sorted(set(re.findall(r"`tests/([a-z0-9_/]+\.(?:c|sh) [^`]*)`", re.sub(r"\s+", " ", text)))):
        file, _, name = test.partition(" ")
        if not is_shown("tests/" + file, name):
            complain(f'{path} names the test "tests/{test}", which does not exist')


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", read(path), flags=re.M | re.S), re.M)
    return {re.sub(r"[^a-z0-9 _-]", "", head.lower()).replace(" ", "-") for head in heads}


def check_page_links(path):
    for link, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", read(path)):
        target = os.path.normpath(os.path.join(os.path.dirname(path), link)) if link else path
        if not os.path.exists(target):
            complain(f"{path} links to {link}, which does not exist")
        elif anchor and anchor not in anchors(target):
            complain(f"{path} links to {target}#{anchor}, which has no such heading")


def check_promises():
    """Each row of the table names tests, and nothing but tests, in its last column."""
    path = "tests/README.md"
    table = re.search(r"^## What happens when.*?(?=^## |\Z)", read(path), re.M | re.S)
    rows = [line for line in table[0].splitlines() if line.startswith("| ") and not line.startswith(("| when |", "| --- |"))] if table else []
    if len(rows) < 150:
        complain(f'{path}: the table "What happens when" has {len(rows)} rows: some are missing')
    one = r"(`[a-z_]+/[tc]_[a-z0-9_]+`|`tests/[a-z0-9_/]+\.[a-z]+ [^`]*`)"
    for row in rows:
        if not re.search(rf"\| {one}(, {one})* \|$", row):
            complain(f"{path}: no test stands behind: {row}")


def check_pages():
    for path in tree.files("*.md"):
        check_named_tests(path)
        for text in named.faults(path, read(path)):
            complain(text)
        check_page_links(path)
    check_promises()


# ---- compilers and shellcheck, in parallel ----

def check_tables():
    """A blank line ends a table: a row behind it is shown as text."""
    for path in tree.files("*.md"):
        lines = [""] + read(path).splitlines() + [""]
        for number, (before, line, after) in enumerate(zip(lines, lines[1:], lines[2:]), 1):
            if line.startswith("|") and not before.startswith("|") and not re.match(r"\|[ :|-]*-[ :|-]*\|", after):
                complain(f"{path}:{number}: a table's row without a table: remove the blank line before it")


def closure(path, known, found):
    """Adds the file and all files of ours that it includes, directly or not."""
    if path in found:
        return found
    found.add(path)
    for kind, name in INCLUDE.findall(read(path)):
        target = resolve(path, name, known) if kind == '"' else None
        if target:
            closure(target, known, found)
    return found


def commands():
    """(what failed if it fails, command, the files that its result follows from) for each process to run."""
    todo = []
    known = set(tree.files("*.c", "*.h")) | {"build/gen/modal.pb-c.h"}
    if shutil.which("musl-gcc"):
        for path in (f for pattern in POSIX_FILES for f in expand(pattern) if f not in NEEDS_BUILD):
            todo.append((f"{path} does not compile with musl", ["musl-gcc", *FLAGS, "-Wno-format-truncation", path], closure(path, known, set())))
    else:
        complain("musl-gcc is missing (make deps)")
    if shutil.which("clang"):
        subprocess.run(["make", "-s", "build/gen/modal.pb-c.h"], check=True)
        cflags = subprocess.run(["pkg-config", "--cflags", *PACKAGES], check=True, capture_output=True, text=True).stdout
        for path in tree.files("cmd/**/*.c", "orchestrator/**/*.c", "providers/**/*.c", "config/*.c", "jobs/*.c", "jobs/**/*.c", "tests/fuzz/*.c"):
            if path not in NEEDS_BUILD:
                todo.append(("does not compile with clang", ["clang", *FLAGS, "-Wno-gnu", *shlex.split(cflags), "-Ibuild/gen", path],
                             closure(path, known, set())))
    if shutil.which("clang-format"):
        sources = tree.files("*.c", "*.h")
        for i in range(0, len(sources), 8):
            group = sources[i:i + 8]
            todo.append(("not laid out as .clang-format says (make format)", ["clang-format", "--dry-run", "-Werror", *group], [".clang-format", *group]))
    else:
        complain("clang-format is missing (make deps-test)")
    if shutil.which("shellcheck"):
        # the long ones first: one of them can take as long as all small ones
        scripts = sorted(tree.files("*.sh", ".ci/run"), key=lambda f: -os.path.getsize(f))
        for path in scripts:
            todo.append(("shellcheck", ["shellcheck", "-S", "warning", "-e", "SC2034,SC1010", path], [path]))
        # COMPREPLY=($(compgen ...)) splits on purpose, as mapfile is not in bash 3; `cmd=` sets an empty text
        path = "cmd/line/completion.bash"
        todo.append(("shellcheck", ["shellcheck", "-s", "bash", "-S", "warning", "-e", "SC2207,SC1007", path], [path]))
    return todo


PASSED = "build/lint"  # an empty file for each command that passed, named by the hash of all that its result follows from


def passed_name(command, files):
    program = shutil.which(command[0])
    key = hashlib.sha256(repr((command, program, os.stat(program).st_mtime)).encode())
    for path in sorted(files):
        with open(path, "rb") as f:
            key.update(path.encode() + b"\0" + hashlib.sha256(f.read()).digest())
    return f"{PASSED}/{key.hexdigest()}"


def run(item):
    what, command, files = item
    passed = passed_name(command, files)
    if os.path.exists(passed):
        os.utime(passed)
        return None, ""
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if not result.returncode:
        open(passed, "w").close()
    return what if result.returncode else None, result.stdout + result.stderr


def forget_old():
    """Names that no lint of the last week has needed."""
    for entry in os.scandir(PASSED):
        if entry.stat().st_mtime < time.time() - 7 * 86400:
            os.unlink(entry.path)


def main():
    os.chdir(ROOT)
    check_includes()
    check_links()
    check_unused()
    check_sizes()
    check_prints()
    for folder in ("jobs/agent", "orchestrator/engine"):
        check_include_circles(folder)
    for folder in ("base", "plan", "core", "net", "sync", "store", "engine", "runs", "unattended"):
        check_call_circles(f"orchestrator/{folder}")
    for folder in ("config", "jobs/agent", "jobs/command", "jobs/text", "jobs/tts", "providers/kubernetes", "providers/local", "providers/modal", "providers/runpod", "providers/vast", "providers/slurm", "cmd/launch", "cmd/line", "cmd/show", "cmd/unattended"):
        check_call_circles(folder)
    check_vendor_words()
    check_parts()
    check_openings()
    check_comments()
    check_top_level()
    check_pages()
    check_tables()
    for text in strings.findings():
        complain(text)
    os.makedirs(PASSED, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for what, said in pool.map(run, commands()):
            if what:
                complain(f"{what}:\n{said.rstrip()}")
    forget_old()
    for text in findings:
        print(f"lint: {text}", file=sys.stderr)
    if not findings:
        print("lint: fine")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
