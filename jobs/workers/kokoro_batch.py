"""Kokoro in batches: the published KModel (package kokoro), step by step, for rows of different lengths.

The published code renders one text at a time: it normalises over the whole time axis and drops the batch axis. Here each row has its
own length. Norms use real frames only, and values behind a row's end are zero before each convolution, like the published padding.
Each row draws the noise of its source from its own seed.
"""
from __future__ import annotations

import importlib.util
import math
import sys
import types
from typing import Any, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils import rnn

SAMPLES_PER_FRAME = 600
HALF = math.sqrt(0.5)


def model_class() -> Any:
    """KModel without the package's pipeline, which imports spacy and downloads."""
    if "kokoro" not in sys.modules:
        spec = importlib.util.find_spec("kokoro")
        if spec is None:
            raise ModuleNotFoundError("No module named 'kokoro'", name="kokoro")
        package = types.ModuleType("kokoro")
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules["kokoro"] = package
    return importlib.import_module("kokoro.model").KModel


def real(lengths: Sequence[int], like: Tensor) -> Tensor:
    """[rows, 1, steps]: 1 within a row, 0 behind its end."""
    ends = torch.tensor(list(lengths), device=like.device)[:, None, None]
    return (torch.arange(max(lengths), device=like.device) < ends).to(like.dtype)


def whole_rows(mask: Tensor) -> bool:
    """Whether all rows have the same length, so that nothing is cut. A single row needs no read from the device."""
    return mask.size(0) == 1


def cut(x: Tensor, mask: Tensor) -> Tensor:
    """Zeroes x behind the end of each row, in place."""
    return x if whole_rows(mask) else x.mul_(mask)


def run_lstm(lstm: Any, x: Tensor, lengths: Sequence[int]) -> Tensor:
    """x: [rows, steps, width]. The backward half starts at each row's own end."""
    packed = rnn.pack_padded_sequence(x, torch.tensor(list(lengths)), batch_first=True, enforce_sorted=False)
    return rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=x.size(1))[0]


def ada_in(module: Any, x: Tensor, style: Tensor, mask: Tensor) -> Tensor:
    """AdaIN1d with mean and variance of the real frames; zero behind them. x is large, and on a CPU each pass over it costs more than
    the convolutions, so there are few."""
    gamma, beta = module.fc(style)[:, :, None].chunk(2, 1)
    frames = mask.sum(-1, keepdim=True)
    whole = whole_rows(mask)
    centred = x - (x if whole else x * mask).sum(-1, keepdim=True) / frames
    if not whole:
        centred.mul_(mask)
    variance = torch.linalg.vector_norm(centred, dim=-1, keepdim=True).square() / frames
    scale = (1 + gamma) * module.norm.weight[:, None] * torch.rsqrt(variance + module.norm.eps)
    shift = (1 + gamma) * module.norm.bias[:, None] + beta
    return cut(torch.addcmul(shift, centred, scale), mask)


def ada_block(block: Any, x: Tensor, style: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """AdainResBlk1d. Also returns the mask of its output, which is twice as long if the block doubles the frames."""
    wide = mask if block.upsample_type == "none" else mask.repeat_interleave(2, -1)
    h = cut(block.pool(block.actv(ada_in(block.norm1, x, style, mask))), wide)
    h = cut(block.conv1(h), wide)
    h = cut(block.conv2(block.actv(ada_in(block.norm2, h, style, wide))), wide)
    return cut(h.add_(block._shortcut(x)).mul_(HALF), wide), wide


def snake(x: Tensor, alpha: Tensor) -> Tensor:
    wave = (alpha * x).sin_()
    return torch.addcmul(x, wave.mul_(wave), 1 / alpha)


def wave_block(block: Any, x: Tensor, style: Tensor, mask: Tensor) -> Tensor:
    """AdaINResBlock1."""
    for i, (one, two) in enumerate(zip(block.convs1, block.convs2)):
        h = cut(one(snake(ada_in(block.adain1[i], x, style, mask), block.alpha1[i])), mask)
        h = cut(two(snake(ada_in(block.adain2[i], h, style, mask), block.alpha2[i])), mask)
        x = h.add_(x)
    return x


class Batch:
    """One call of a KModel: `ids` per row (with the marks at both ends), `styles` [rows, 256], `speeds` and `seeds` per row."""

    rows_at_once = 0  # in the vocoder; 0: chosen by device

    def __init__(self, model: Any, ids: Sequence[Tensor], styles: Tensor, speeds: Sequence[float], seeds: Sequence[int]) -> None:
        self.model, self.device, self.seeds = model, styles.device, seeds
        self.lengths = [i.numel() for i in ids]
        self.ids = rnn.pad_sequence([i.to(self.device) for i in ids], batch_first=True)
        self.voice, self.prosody = styles[:, :128], styles[:, 128:]
        self.speeds = torch.tensor(list(speeds), device=self.device, dtype=styles.dtype)[:, None]

    @torch.inference_mode()
    def speak(self) -> tuple[list[Tensor], list[Tensor]]:
        """Samples and durations (frames of each phoneme) of each row, on the device."""
        model = self.model
        mask = real(self.lengths, self.voice)
        lengths, behind = torch.tensor(self.lengths, device=self.device), mask[:, 0] == 0
        d = model.bert_encoder(model.bert(self.ids, attention_mask=(~behind).int())).transpose(1, 2)
        d = model.predictor.text_encoder(d, self.prosody, lengths, behind)
        durations = self.durations(d)
        self.frames = [int(n.sum()) for n in durations]
        frames = real(self.frames, self.voice)
        pitch, loudness = self.curves(self.stretch(d, durations), frames)
        text = model.text_encoder(self.ids, lengths, behind).transpose(1, 2)
        waves = self.decode(self.stretch(text, durations).transpose(1, 2), pitch, loudness, frames)
        return waves, durations

    def durations(self, d: Tensor) -> list[Tensor]:
        predictor = self.model.predictor
        chances = torch.sigmoid(predictor.duration_proj(run_lstm(predictor.lstm, d, self.lengths)))
        frames = torch.round(chances.sum(-1) / self.speeds).clamp(min=1).long()
        return [row[:n] for row, n in zip(frames, self.lengths)]

    def stretch(self, x: Tensor, durations: Sequence[Tensor]) -> Tensor:
        """Repeats each phoneme's vector for its frames. The published code multiplies by an alignment."""
        return rnn.pad_sequence([torch.repeat_interleave(row[:n.numel()], n, dim=0) for row, n in zip(x, durations)], batch_first=True)

    def curves(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Pitch and loudness, [rows, 1, 2 x frames]."""
        predictor = self.model.predictor
        x = run_lstm(predictor.shared, x, self.frames).transpose(1, 2)
        return self.curve(x, mask, predictor.F0, predictor.F0_proj), self.curve(x, mask, predictor.N, predictor.N_proj)

    def curve(self, x: Tensor, mask: Tensor, blocks: Any, project: Any) -> Tensor:
        for block in blocks:
            x, mask = ada_block(block, x, self.prosody, mask)
        return project(x) * mask

    def decode(self, text: Tensor, pitch: Tensor, loudness: Tensor, mask: Tensor) -> list[Tensor]:
        decoder = self.model.decoder
        beside = [decoder.F0_conv(pitch) * mask, decoder.N_conv(loudness) * mask]
        x, _ = ada_block(decoder.encode, torch.cat([text, *beside], 1), self.voice, mask)
        again = [decoder.asr_res(text) * mask, *beside]
        for block in decoder.decode:
            if again:
                x = torch.cat([x, *again], 1)
            x, mask = ada_block(block, x, self.voice, mask)
            if block.upsample_type != "none":
                again = []
        return self.generate(x, pitch)

    def generate(self, x: Tensor, pitch: Tensor) -> list[Tensor]:
        """Renders each row alone on a CPU: rows in parallel exceed its caches and need padding, which costs more than it saves."""
        at_once = self.rows_at_once or (1 if self.device.type == "cpu" else len(self.frames))
        waves = []
        for at in range(0, len(self.frames), at_once):
            rows = slice(at, at + at_once)
            most = max(self.frames[rows])
            waves += self.generate_rows(x[rows, :, :2 * most], pitch[rows, :, :2 * most], self.voice[rows], self.frames[rows], self.seeds[rows])
        return waves

    def generate_rows(self, x: Tensor, pitch: Tensor, style: Tensor, frames: Sequence[int], seeds: Sequence[int]) -> list[Tensor]:
        net = self.model.decoder.generator
        source = self.sources(pitch, frames, seeds)
        lengths = [2 * n for n in frames]
        for i in range(net.num_upsamples):
            lengths = [n * net.ups[i].stride[0] for n in lengths]
            x = net.ups[i](F.leaky_relu(x, 0.1))
            x = cut(x, real(lengths, x))
            if i == net.num_upsamples - 1:
                x, lengths = net.reflection_pad(x), [n + 1 for n in lengths]
            mask = real(lengths, x)
            x = x.add_(wave_block(net.noise_res[i], cut(net.noise_convs[i](source), mask), style, mask))
            blocks = net.resblocks[i * net.num_kernels:(i + 1) * net.num_kernels]
            x = sum(wave_block(block, x, style, mask) for block in blocks) / net.num_kernels
        x = net.conv_post(F.leaky_relu(x))
        half = net.post_n_fft // 2 + 1
        return [net.stft.inverse(torch.exp(row[None, :half, :n]), torch.sin(row[None, half:, :n])).reshape(-1)
                for row, n in zip(x, lengths)]

    def sources(self, pitch: Tensor, frames: Sequence[int], seeds: Sequence[int]) -> Tensor:
        """The harmonic source's spectrum, row by row, since interpolation and padding depend on the end of a row."""
        net, rows = self.model.decoder.generator, []
        for row, n, seed in zip(pitch, frames, seeds):
            chance = torch.Generator(self.device if self.device.type == "cuda" else "cpu").manual_seed(seed)
            samples = net.f0_upsamp(row[None, :, :2 * n]).transpose(1, 2)
            rows.append(torch.cat(net.stft.transform(self.source(samples, chance)), 1)[0].T)
        return rnn.pad_sequence(rows, batch_first=True).transpose(1, 2)

    def source(self, pitch: Tensor, chance: torch.Generator) -> Tensor:
        """The published SineGen and its mixture; pitch: [1, samples, 1]."""
        module = self.model.decoder.generator.m_source
        sines, harmonics = module.l_sin_gen, module.l_sin_gen.dim
        turns = pitch * torch.arange(1, harmonics + 1, device=self.device) / sines.sampling_rate % 1
        first = torch.rand(1, harmonics, generator=chance, device=chance.device, dtype=torch.float32).to(pitch)
        first[:, 0] = 0
        turns[:, 0] += first
        turns = F.interpolate(turns.transpose(1, 2), scale_factor=1 / sines.upsample_scale, mode="linear")
        phase = torch.cumsum(turns, -1) * 2 * torch.pi * sines.upsample_scale
        waves = torch.sin(F.interpolate(phase, scale_factor=sines.upsample_scale, mode="linear")).transpose(1, 2) * sines.sine_amp
        voiced = (pitch > sines.voiced_threshold).to(pitch)
        noise = torch.randn(waves.shape, generator=chance, device=chance.device, dtype=torch.float32).to(pitch)
        waves = waves * voiced + (voiced * sines.noise_std + (1 - voiced) * sines.sine_amp / 3) * noise
        return module.l_tanh(module.l_linear(waves))[:, :, 0]
