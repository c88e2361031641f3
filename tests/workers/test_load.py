"""Loading Chatterbox's weights: the models of burst's own reading against those of the published from_local(), from one folder of
random weights. Fewer layers than the published transformers have; all else is as published. Skipped as test_chatterbox.py is."""
from __future__ import annotations

import json
import os
import shutil
import tempfile
import unittest
from typing import Any
from unittest import mock

import test_chatterbox as published
from burst_phases import Phases
from test_chatterbox import MISSING, make_t3

if not MISSING:
    import burst_read
    import torch
    from chatterbox.models.s3gen import S3Gen
    from chatterbox.models.t3 import llama_configs
    from chatterbox.models.voice_encoder import VoiceEncoder
    from chatterbox_prepare import FILES, READY, prepare
    from chatterbox_weights import Weights, fill
    from safetensors.torch import load_file, save_file


def small(turbo: bool) -> Any:
    name = "GPT2_medium" if turbo else "Llama_520M"
    return mock.patch.dict(llama_configs.LLAMA_CONFIGS, {name: {**llama_configs.LLAMA_CONFIGS[name],
                                                                "n_layer" if turbo else "num_hidden_layers": published.LAYERS}})


def publish(folder: str, turbo: bool) -> list[Any]:
    """Files as the hub has them. Returns the models that they came from."""
    torch.manual_seed(5)
    models = [make_t3(turbo), S3Gen(meanflow=turbo).eval(), VoiceEncoder().eval()]
    for model, name in zip(models, (*FILES[turbo], "ve.safetensors")):
        save_file({key: value.contiguous().clone() for key, value in model.state_dict().items()}, os.path.join(folder, name))
    return models


def load(folder: str, turbo: bool, number: Any) -> tuple[Any, Any, Any]:
    with small(turbo):
        weights = Weights(folder, turbo)
        models = weights.models()
    fill(*models, weights.tensors(), turbo, "cpu", number)
    return models


@unittest.skipIf(MISSING, MISSING)
class Loading(unittest.TestCase):
    turbo = False

    models: list[Any] = []
    published = ""

    @classmethod
    def setUpClass(cls) -> None:
        torch.set_num_threads(1)
        cls.published = tempfile.mkdtemp()
        cls.models = publish(cls.published, cls.turbo)

    @classmethod
    def tearDownClass(cls) -> None:
        shutil.rmtree(cls.published)
        cls.models = []

    def setUp(self) -> None:
        """A folder of its own whose files are those that were published, and may be removed or replaced."""
        hold = tempfile.TemporaryDirectory()
        self.addCleanup(hold.cleanup)
        self.folder = hold.name
        for name in os.listdir(self.published):
            os.link(os.path.join(self.published, name), os.path.join(self.folder, name))

    def test_every_number_is_as_published(self) -> None:
        loaded = load(self.folder, self.turbo, torch.float32)
        for was, now in zip(self.models, loaded):
            names = {**dict(was.named_parameters()), **dict(was.named_buffers())}
            found = {**dict(now.named_parameters()), **dict(now.named_buffers())}
            dropped = {"tfmr.wte.weight"} if self.turbo else set()
            self.assertEqual(set(names) - dropped, set(found) - dropped)
            for name, tensor in found.items():
                self.assertTrue(torch.equal(tensor, names[name]), name)
                self.assertFalse(tensor.requires_grad, name)
            self.assertFalse(now.training)
        self.assertFalse(hasattr(loaded[0].tfmr, "wte"))

    def test_prepared_weights(self) -> None:
        prepare(self.folder)
        self.assertFalse(os.path.exists(os.path.join(self.folder, FILES[self.turbo][0])))
        self.assertTrue(all(t.dtype == torch.bfloat16 for t in load_file(os.path.join(self.folder, READY)).values()))
        t3 = load(self.folder, self.turbo, torch.bfloat16)[0]
        for name, parameter in t3.named_parameters():
            self.assertTrue(torch.equal(parameter, dict(self.models[0].named_parameters())[name].to(torch.bfloat16)), name)
        for name, buffer in t3.named_buffers():
            self.assertNotEqual(buffer.dtype, torch.bfloat16, name)  # the frequencies of positions: they must stay exact

    def test_the_voice_encoder_computes(self) -> None:
        """Its LSTM keeps a second list of its weights, which must be the new ones."""
        mels = torch.rand(2, 160, 40)
        with torch.inference_mode():
            self.assertTrue(torch.equal(self.models[2](mels), load(self.folder, self.turbo, torch.float32)[2](mels)))

    def test_a_file_that_is_cut_off(self) -> None:
        path = os.path.join(self.folder, "ve.safetensors")
        with open(path, "rb") as f:
            data = f.read()
        os.unlink(path)
        with open(path, "wb") as f:
            f.write(data[:-5])
        with self.assertRaisesRegex(burst_read.BadFile, "ve.safetensors is not a file of weights: .* does not fit"):
            load(self.folder, self.turbo, torch.float32)

    def test_a_file_that_lacks_a_tensor(self) -> None:
        path = os.path.join(self.folder, "ve.safetensors")
        tensors = load_file(path)
        del tensors["proj.weight"]
        os.unlink(path)
        save_file(tensors, path)
        with self.assertRaisesRegex(burst_read.BadFile, "the weights lack proj.weight"):
            load(self.folder, self.turbo, torch.float32)


class TurboLoading(Loading):
    turbo = True


@unittest.skipIf(MISSING, MISSING)
class Reading(unittest.TestCase):
    def read(self, data: bytes) -> dict[str, Any]:
        with tempfile.NamedTemporaryFile() as f:
            f.write(data)
            f.flush()
            reader = burst_read.Reader([f.name])
            try:
                return reader.tensors(f.name)
            finally:
                reader.close()

    def test_blocks_of_any_size(self) -> None:
        tensor = torch.arange(100_003, dtype=torch.int16)
        with tempfile.NamedTemporaryFile() as f:
            save_file({"a": tensor, "none": torch.empty(0, 3)}, f.name)
            with mock.patch.object(burst_read, "BLOCK_BYTES", 4097):
                reader = burst_read.Reader([f.name])
                found = reader.tensors(f.name)
                reader.close()
        self.assertTrue(torch.equal(found["a"], tensor))
        self.assertEqual(found["none"].shape, (0, 3))

    def test_foreign_bytes(self) -> None:
        def file(header: Any, body: bytes = bytes(16)) -> bytes:
            text = header if isinstance(header, bytes) else json.dumps(header).encode()
            return len(text).to_bytes(8, "little") + text + body

        good = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
        self.assertEqual(self.read(file({"a": good}))["a"].shape, (4,))
        for bad in (b"", b"\1", (1 << 60).to_bytes(8, "little") + b"{}", file(b"nonsense"), file([1]), file({"a": 3}), file({"a": {}}),
                    file({"a": {**good, "dtype": "F3"}}), file({"a": {**good, "shape": [5]}}), file({"a": {**good, "data_offsets": [0, 17]}}),
                    file({"a": {**good, "data_offsets": [-16, 0]}}), file({"a": {**good, "shape": [-4]}}),
                    file({"a": {**good, "shape": [1 << 40], "data_offsets": [0, 1 << 42]}})):
            with self.assertRaises(burst_read.BadFile, msg=bad[:60]):
                self.read(bad)


class PhasesOfAStart(unittest.TestCase):
    def test_a_phase_inside_another_counts_once(self) -> None:
        now = iter([0.0, 1.0, 4.0, 6.0])
        with mock.patch("burst_phases.time.monotonic", lambda: next(now)):
            phases = Phases()
            with phases("build"):
                with phases("read"):
                    pass
        self.assertEqual(phases.facts(), {"read_s": 3.0, "build_s": 3.0})


if __name__ == "__main__":
    unittest.main(verbosity=2)
