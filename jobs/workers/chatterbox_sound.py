"""Chatterbox's sound for a sub-batch: speech tokens to a mel spectrogram (S3Gen's flow) to samples (its vocoder).

All rows have one voice, so their prompts have the same length and padding comes last. Each row draws its own noise. The vocoder has
no mask and reads some 14 frames ahead, so silent tokens follow each row's own and the result is cut to the row's length. The
published functions draw one noise for all rows; otherwise this code follows them step by step.
"""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, Sequence

import numpy
import torch
from torch import Tensor
from torch.nn import functional as F

SILENCE = 4299          # a speech token
SILENT_TOKENS = 8
MEL_PER_TOKEN = 2
SAMPLES_PER_TOKEN = 960


def with_silence(tokens: Tensor) -> Tensor:
    return F.pad(tokens, (0, SILENT_TOKENS), value=SILENCE)


def make_noise(shape: Sequence[int], generator: torch.Generator, device: Any) -> Tensor:
    return torch.randn(*shape, generator=generator, device=generator.device).to(device)


class Sound:
    def __init__(self, s3gen: Any, steps: int, half: bool = False) -> None:
        """half: the flow's estimator, which does most of the work, computes in bfloat16. Encoder and vocoder never do."""
        self.half = half
        self.s3gen, self.flow, self.vocoder, self.steps = s3gen, s3gen.flow, s3gen.mel2wav, steps
        self.device, self.dtype = s3gen.device, s3gen.dtype

    def generators(self, seeds: Sequence[int]) -> list[torch.Generator]:
        return [torch.Generator(self.device if self.device.type == "cuda" else "cpu").manual_seed(seed) for seed in seeds]

    @torch.inference_mode()
    def waves(self, tokens: Sequence[Tensor], voice: dict[str, Any], seeds: Sequence[int]) -> list[Tensor]:
        """Samples of each row, on the device."""
        rows, chance = [with_silence(t.to(self.device)) for t in tokens], self.generators(seeds)
        mels = self.mels(rows, voice, chance)
        wave = self.vocode(mels, [MEL_PER_TOKEN * r.size(0) for r in rows], chance)
        fade = self.s3gen.trim_fade
        wave[:, :fade.size(0)] *= fade
        return [w[:SAMPLES_PER_TOKEN * t.size(0)] for w, t in zip(wave, tokens)]

    def mels(self, rows: Sequence[Tensor], voice: dict[str, Any], chance: Sequence[torch.Generator]) -> Tensor:
        flow, b = self.flow, len(rows)
        prompt, prompt_mel = voice["prompt_token"].to(self.device), voice["prompt_feat"].to(self.device, self.dtype)
        lengths = torch.tensor([prompt.size(1) + r.size(0) for r in rows], device=self.device)
        most = int(lengths.max())
        tokens = torch.stack([F.pad(torch.cat([prompt[0].long(), r.long()]), (0, most - n)) for r, n in zip(rows, lengths.tolist())])
        speaker = flow.spk_embed_affine_layer(F.normalize(torch.atleast_2d(voice["embedding"].to(self.device, self.dtype)), dim=1))
        real = (torch.arange(most, device=self.device) < lengths[:, None]).unsqueeze(-1)
        with self.padding_is_zero(real):
            h, h_mask = flow.encoder(flow.input_embedding(tokens) * real, lengths)
        h = flow.encoder_proj(h)
        cond = h.new_zeros(b, h.size(1), flow.output_size)
        cond[:, :prompt_mel.size(1)] = prompt_mel
        noise = h.new_zeros(b, flow.output_size, h.size(1))
        for i, n in enumerate(lengths.tolist()):
            noise[i, :, :MEL_PER_TOKEN * n] = make_noise((flow.output_size, MEL_PER_TOKEN * n), chance[i], self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
            mel = self.solve(noise, h.transpose(1, 2).contiguous(), h_mask.to(h), speaker.expand(b, -1), cond.transpose(1, 2)).float()
        return mel[:, :, prompt_mel.size(1):]

    @contextlib.contextmanager
    def padding_is_zero(self, real: Tensor) -> Iterator[None]:
        """The encoder reads three tokens ahead. Makes the padding behind a row equal to that behind a batch of one."""
        hook = self.flow.encoder.pre_lookahead_layer.register_forward_pre_hook(lambda _, given: (given[0] * real, *given[1:]))
        try:
            yield
        finally:
            hook.remove()

    def solve(self, noise: Tensor, mu: Tensor, mask: Tensor, speaker: Tensor, cond: Tensor) -> Tensor:
        decoder = self.flow.decoder
        times = torch.linspace(0, 1, self.steps + 1, device=mu.device, dtype=mu.dtype)
        if self.s3gen.meanflow:
            return self.solve_meanflow(noise, times, mu, mask, speaker, cond)
        if decoder.t_scheduler == "cosine":
            times = 1 - torch.cos(times * 0.5 * torch.pi)
        return decoder.solve_euler(noise, t_span=times, mu=mu, mask=mask, spks=speaker, cond=cond)

    def solve_meanflow(self, x: Tensor, times: Tensor, mu: Tensor, mask: Tensor, speaker: Tensor, cond: Tensor) -> Tensor:
        """The published basic_euler() without the line and bar that it prints."""
        for t, r in zip(times[:-1], times[1:]):
            t, r = t.expand(x.size(0)), r.expand(x.size(0))
            x = x + (r - t)[:, None, None] * self.flow.decoder.estimator.forward(x, mask=mask, mu=mu, t=t, spks=speaker, cond=cond, r=r)
        return x

    def vocode(self, mels: Tensor, lengths: Sequence[int], chance: Sequence[torch.Generator]) -> Tensor:
        vocoder = self.vocoder
        for i, n in enumerate(lengths):
            mels[i, :, n:] = 0
        pitch = vocoder.f0_upsamp(vocoder.f0_predictor(mels)[:, None])  # [rows, 1, samples]
        source = self.source(pitch, [n * pitch.size(-1) // mels.size(-1) for n in lengths], chance)
        return vocoder.decode(x=mels, s=source)

    def source(self, pitch: Tensor, samples: Sequence[int], chance: Sequence[torch.Generator]) -> Tensor:
        """The published SineGen and its mixture, with phases and noise of each row."""
        module, sines = self.vocoder.m_source, self.vocoder.m_source.l_sin_gen
        harmonics = sines.harmonic_num + 1
        steps = pitch * torch.arange(1, harmonics + 1, device=pitch.device)[None, :, None] / sines.sampling_rate
        phases, noise = pitch.new_zeros(pitch.size(0), harmonics, 1), torch.zeros_like(steps)
        for i, n in enumerate(samples):
            phases[i] = (2 * torch.rand(harmonics, 1, generator=chance[i], device=chance[i].device).to(pitch) - 1) * numpy.pi
            noise[i, :, :n] = make_noise((harmonics, n), chance[i], pitch.device)
        phases[:, 0] = 0
        waves = sines.sine_amp * torch.sin(2 * numpy.pi * (torch.cumsum(steps, -1) % 1) + phases)
        voiced = (pitch > sines.voiced_threshold).to(pitch)
        waves = waves * voiced + (voiced * sines.noise_std + (1 - voiced) * sines.sine_amp / 3) * noise
        return module.l_tanh(module.l_linear(waves.transpose(1, 2))).transpose(1, 2)
