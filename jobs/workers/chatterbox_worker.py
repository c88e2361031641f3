"""The worker for Chatterbox (resemble-ai/chatterbox, package chatterbox-tts 0.1.7): batches of JSON lines in, WAV
files out. The protocol is in jobs/PROTOCOL.md.

Written against the package's published source; it needs a CUDA GPU and burst's own tests have never run it on one. The
file must not be called chatterbox.py: Python would take it for the package. Voices are files beside this one, as a
task's "voice_file" names them.
"""
import json
import os
import random
import struct
import sys
import time
import traceback

OPTIONS = ("exaggeration", "cfg_weight", "temperature", "repetition_penalty", "min_p", "top_p")

# Libraries print to stdout; the protocol needs it for itself.
wire = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)


def say(**message):
    wire.write(json.dumps(message, ensure_ascii=False) + "\n")
    wire.flush()


def load_model():
    import torch
    from chatterbox.tts import ChatterboxTTS

    if not torch.cuda.is_available():
        raise RuntimeError("no GPU that CUDA can use")
    return torch, ChatterboxTTS.from_pretrained(device="cuda")


def write_wav(path, samples, rate):
    """16-bit mono, complete before it gets its name; returns the file's bytes."""
    import hashlib

    data = (samples.clamp(-1, 1) * 32767).round().short().cpu().numpy().astype("<i2").tobytes()
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1,
                       rate, rate * 2, 2, 16, b"data", len(data))
    temporary = path + ".tmp"
    with open(temporary, "wb") as f:
        f.write(head)
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    os.rename(temporary, path)
    return len(head) + len(data), hashlib.sha256(head + data).hexdigest(), len(data) / 2 / rate


class Speaker:
    def __init__(self):
        self.torch, self.model = load_model()
        self.voices = {}
        self.builtin = self.model.conds

    def use_voice(self, voice_file, exaggeration):
        """A voice is prepared once: that costs about as much as a short sentence."""
        if not voice_file:
            if self.builtin is None:
                raise ValueError("the model has no voice of its own: name one")
            self.model.conds = self.builtin
            return
        if voice_file not in self.voices:
            path = os.path.join(os.environ.get("BURST_KIT", "."), os.path.basename(voice_file))
            self.model.prepare_conditionals(path, exaggeration=exaggeration)
            self.voices[voice_file] = self.model.conds
        self.model.conds = self.voices[voice_file]

    def speak(self, task):
        seed = int(task.get("seed", 0))
        random.seed(seed)
        self.torch.manual_seed(seed)
        self.torch.cuda.manual_seed_all(seed)
        options = {k: v for k, v in (task.get("options") or {}).items() if k in OPTIONS}
        self.use_voice(task.get("voice_file"), options.get("exaggeration", 0.5))
        with self.torch.inference_mode():
            return self.model.generate(task["text"], **options).squeeze(0)


def render(speaker, task):
    began = time.monotonic()
    try:
        name = os.path.basename(task["file"])
        path = os.path.join(os.environ.get("BURST_OUT", "."), name)
        size, digest, seconds = write_wav(path, speaker.speak(task), speaker.model.sr)
    except speaker.torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:  # one bad line must not end the batch; a GPU that is lost ends the worker
        if "CUDA error" in str(error):
            raise
        traceback.print_exc()
        say(segment=task.get("id"), ok=False, error=str(error)[:300])
        return
    say(segment=task["id"], ok=True, file=name, bytes=size, sha256=digest, seconds=seconds,
        rate=speaker.model.sr, ms=int(1000 * (time.monotonic() - began)))


def render_batch(speaker, batch):
    try:
        for task in batch["segments"]:
            render(speaker, task)
    except speaker.torch.cuda.OutOfMemoryError as error:
        speaker.torch.cuda.empty_cache()
        say(oom=True, error=str(error)[:300])  # the batch comes back smaller
        return
    say(batch=batch["batch"], done=True)


def main():
    try:
        speaker = Speaker()
    except Exception as error:
        traceback.print_exc()
        say(hello=1, protocol=1, engine="chatterbox", error=str(error)[:300])
        return 1
    say(hello=1, protocol=1, engine="chatterbox", version="0.1.7", sample_rate=speaker.model.sr, max_batch=8,
        gpu=speaker.torch.cuda.get_device_name(0))
    for line in sys.stdin:
        message = json.loads(line) if line.strip() else {}
        if "segments" in message:
            render_batch(speaker, message)
    return 0


if __name__ == "__main__":
    sys.exit(main())
