"""burst_worker.py ENGINE [ARGUMENT...] [--pin NAME==VERSION]... - a worker process (jobs/PROTOCOL.md) around an engine.

ENGINE is the name of a module beside this file (engine_NAME.py) or the path of a user's own. The worker calls its ENGINE with the
arguments. --pin names a version that is part of the segments' keys: if another one is installed, the worker exits before it renders.
"""
from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import random
import sys
import tempfile
import traceback
from typing import Any, Optional

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from burst_device import Device, DeviceLost, TooSmall, Unfit, kind_of  # noqa: E402
from burst_engine import Bad, CannotRun, Engine, Task, sound_of  # noqa: E402
from burst_hear import Hearer, make_hearer  # noqa: E402
from burst_phases import Phases  # noqa: E402
from burst_probe import most_at_once  # noqa: E402
from burst_render import Renderer  # noqa: E402
from burst_wire import Progress, Wire, heartbeat, log  # noqa: E402

QUIET = {"TQDM_DISABLE": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
         "HF_HUB_DISABLE_TELEMETRY": "1"}


def find_engine(name: str, arguments: list[str]) -> Engine:
    path = name if name.endswith(".py") else os.path.join(os.path.dirname(os.path.abspath(__file__)), f"engine_{name}.py")
    if not os.path.exists(path):
        raise CannotRun(f"there is no engine at {path}")
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.ENGINE(*arguments)


def split_arguments(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    plain, pins = [], {}
    rest = iter(arguments)
    for argument in rest:
        if argument == "--pin":
            name, _, version = next(rest, "").partition("==")
            pins[name] = version
        else:
            plain.append(argument)
    return plain, pins


def version_of(package: str) -> Optional[str]:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_pins(pins: dict[str, str]) -> None:
    for package, wanted in pins.items():
        found = version_of(package)
        if found is None:
            raise CannotRun(f"{package} is not installed here; this engine needs {wanted}")
        if found != wanted:
            raise CannotRun(f"{package} is {found} here, and the segments are to be made with {wanted}: the environment is stale")


def check_weights(engine: Engine, wanted: Optional[str]) -> None:
    if wanted and not engine.weights().startswith(wanted):
        raise CannotRun(f"the weights are {engine.weights() or 'unknown'} here, and the segments are to be made with {wanted}")


def warm_up(engine: Engine) -> None:
    """Renders a batch of two in both stages, so that kernels, allocator and graphs are ready before the first real segment."""
    tasks = [Task(f"warm-up-{i}", "", text, engine.warm_up_voice, None, i, {}) for i, text in enumerate(engine.warm_up_texts)]
    rows = list(engine.tokens(tasks))
    bad = [row for row in rows if isinstance(row, Bad)]
    waves = [] if bad else list(engine.waves(tasks, rows))
    bad += [wave for wave in waves if isinstance(wave, Bad)]
    if bad:
        raise CannotRun(f"the first batch gave no sound: {bad[0].why}")
    for task, wave in zip(tasks, waves):
        sound_of(engine, task, wave)


def load(engine: Engine, pins: dict[str, str]) -> tuple[Device, dict[str, Any], Optional[Hearer]]:
    """Does everything before hello. Returns the fields of hello, and what hears the files."""
    weights = pins.pop("weights", None)
    engine.phase = phase = Phases()
    engine.begin()
    check_pins(pins)
    with phase("import"):
        device = engine.make_device()
    with phase("warm_up"):
        fault = device.self_test()
    if fault:
        raise CannotRun(fault)
    with phase("build"):
        engine.load()
    check_weights(engine, weights)
    with phase("warm_up"):
        warm_up(engine)
        hearer = make_hearer()  # before the probe, which then counts the GPU memory that it takes
    versions = {p: version_of(p) or "?" for p in engine.packages}
    own = next(iter(versions.values()), "1")
    with phase("probe"):
        most, probe = most_at_once(engine, device, " ".join(f"{p}={v}" for p, v in versions.items()))
    if most < 1:
        raise CannotRun(TooSmall(f"{device.gpu}: {device.total_gib():.1f} GiB are not enough for one segment"))
    engine.expect(most)
    short = engine.weights()[:12]
    return device, {"version": f"{own} {short}".strip(), "versions": versions, "weights": engine.weights(),
                    "sample_rate": engine.sample_rate, "max_batch": most, "batching": engine.batching, "gpu": device.gpu,
                    "phases": phase.facts(), **({"probe": probe} if probe else {})}, hearer


def explain(error: Exception) -> str:
    if isinstance(error, CannotRun):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"Python has no module {error.name}: the engine's set-up is incomplete"
    if kind_of(error) == "memory":
        return f"the model does not fit: {error}"
    return f"{type(error).__name__}: {error}"


def blame(error: Exception) -> dict[str, str]:
    """The fields of hello that blame the card, if another may work."""
    if isinstance(error, CannotRun):
        why = error.args[0]
        return {"unfit": why.blame} if isinstance(why, Unfit) else {}
    return {"unfit": TooSmall.blame} if kind_of(error) == "memory" else {}


def main() -> int:
    wire = Wire()
    random.seed(0)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("NUMBA_CACHE_DIR", tempfile.gettempdir())
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    arguments, pins = split_arguments(sys.argv[2:])
    engine = None
    try:
        with heartbeat("loading"):
            engine = find_engine(name, arguments)
            device, facts, hearer = load(engine, pins)
    except DeviceLost as error:  # no hello: the agent starts another process, which avoids what killed this one
        log(f"the GPU is lost: {error}")
        return 1
    except Exception as error:
        traceback.print_exc()
        wire.hello(engine.name if engine else name, error=explain(error)[:300], **blame(error))
        return 1
    engine.progress = Progress()
    wire.hello(engine.name, **facts)
    renderer = Renderer(engine, device, wire, os.environ.get("BURST_OUT", "."), facts["max_batch"], hearer)
    try:
        for message in wire.batches():
            renderer.render(message)
    except DeviceLost as error:
        log(f"the GPU is lost: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
