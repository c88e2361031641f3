"""chatterbox_prepare.py FOLDER - prepares Chatterbox's weights for quick starts, once, while the environment is made.

It halves the language model by converting it to bfloat16, which a GPU computes with. Then it removes the published file, whose hash
was checked when it was fetched.
"""
from __future__ import annotations

import os
import sys

READY = "t3.bf16.safetensors"
# By turbo: the language model and the sound.
FILES = {False: ("t3_cfg.safetensors", "s3gen.safetensors"), True: ("t3_turbo_v1.safetensors", "s3gen_meanflow.safetensors")}
NEVER_READ = "tfmr.wte.weight"  # in Turbo: the published code drops it after loading


def prepare(folder: str) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    turbo = os.path.exists(os.path.join(folder, FILES[True][0]))
    published, ready = os.path.join(folder, FILES[turbo][0]), os.path.join(folder, READY)
    tensors = load_file(published)
    tensors.pop(NEVER_READ, None)
    for name, tensor in tensors.items():
        if tensor.is_floating_point():
            tensors[name] = tensor.to(torch.bfloat16).contiguous()
    save_file(tensors, ready + ".part")
    os.rename(ready + ".part", ready)
    os.unlink(published)
    print(f"weights: {READY}: {os.path.getsize(ready) / 1e6:.1f} MB, from {os.path.basename(published)}", flush=True)


if __name__ == "__main__":
    prepare(sys.argv[1])
