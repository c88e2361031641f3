/* python.c - embeds the Python files of jobs/workers/ in burst. */
#include "python.h"

#include <string.h>

#include "base/mem.h"
#include "base/incbin.h"

INCBIN(python_audio, "jobs/workers/burst_audio.py");
INCBIN(python_device, "jobs/workers/burst_device.py");
INCBIN(python_engine, "jobs/workers/burst_engine.py");
INCBIN(python_graphs, "jobs/workers/burst_graphs.py");
INCBIN(python_phases, "jobs/workers/burst_phases.py");
INCBIN(python_probe, "jobs/workers/burst_probe.py");
INCBIN(python_read, "jobs/workers/burst_read.py");
INCBIN(python_render, "jobs/workers/burst_render.py");
INCBIN(python_wire, "jobs/workers/burst_wire.py");
INCBIN(python_worker, "jobs/workers/burst_worker.py");
INCBIN(python_chatterbox, "jobs/workers/engine_chatterbox.py");
INCBIN(python_chatterbox_blocks, "jobs/workers/chatterbox_blocks.py");
INCBIN(python_chatterbox_loop, "jobs/workers/chatterbox_loop.py");
INCBIN(python_chatterbox_prepare, "jobs/workers/chatterbox_prepare.py");
INCBIN(python_chatterbox_slots, "jobs/workers/chatterbox_slots.py");
INCBIN(python_chatterbox_sound, "jobs/workers/chatterbox_sound.py");
INCBIN(python_chatterbox_t3, "jobs/workers/chatterbox_t3.py");
INCBIN(python_chatterbox_weights, "jobs/workers/chatterbox_weights.py");
INCBIN(python_kokoro, "jobs/workers/engine_kokoro.py");
INCBIN(python_kokoro_batch, "jobs/workers/kokoro_batch.py");
INCBIN(python_kokoro_text, "jobs/workers/kokoro_text.py");
INCBIN(python_piper, "jobs/workers/engine_piper.py");
INCBIN(python_piper_voice, "jobs/workers/piper_voice.py");
INCBIN(python_qwen3, "jobs/workers/engine_qwen3.py");
INCBIN(python_qwen3_blocks, "jobs/workers/qwen3_blocks.py");
INCBIN(python_qwen3_talk, "jobs/workers/qwen3_talk.py");
INCBIN(python_weights, "jobs/workers/burst_weights.py");
/* `make locks` makes these */
INCBIN(lock_chatterbox, "jobs/workers/lock/chatterbox.txt");
INCBIN(lock_kokoro, "jobs/workers/lock/kokoro.txt");
INCBIN(lock_kokoro_source, "jobs/workers/lock/kokoro-source.txt");
INCBIN(lock_piper, "jobs/workers/lock/piper.txt");
INCBIN(lock_piper_joe, "jobs/workers/lock/piper-joe.txt");
INCBIN(lock_piper_voice, "jobs/workers/lock/piper-voice.txt");
INCBIN(lock_qwen3, "jobs/workers/lock/qwen3.txt");
INCBIN(lock_qwen3_source, "jobs/workers/lock/qwen3-source.txt");
INCBIN(lock_torchaudio, "jobs/workers/lock/torchaudio.txt");
INCBIN(lock_uv, "jobs/workers/lock/uv.txt");

const char python_harness_main[] = "burst_worker.py";
const char *const python_harness[] = {
	"burst_audio.py", "burst_device.py", "burst_engine.py", "burst_phases.py", "burst_probe.py",
	"burst_read.py",  "burst_render.py", "burst_wire.py",   "burst_worker.py", NULL};

const struct job_file *python_file(const char *name)
{
	static struct job_file files[] = {
		{"burst_audio.py", python_audio, 0, 0644},
		{"burst_device.py", python_device, 0, 0644},
		{"burst_engine.py", python_engine, 0, 0644},
		{"burst_probe.py", python_probe, 0, 0644},
		{"burst_render.py", python_render, 0, 0644},
		{"burst_wire.py", python_wire, 0, 0644},
		{"burst_worker.py", python_worker, 0, 0644},
		{"engine_piper.py", python_piper, 0, 0644},
		{"piper_voice.py", python_piper_voice, 0, 0644},
		{"engine_chatterbox.py", python_chatterbox, 0, 0644},
		{"burst_graphs.py", python_graphs, 0, 0644},
		{"burst_phases.py", python_phases, 0, 0644},
		{"burst_read.py", python_read, 0, 0644},
		{"chatterbox_blocks.py", python_chatterbox_blocks, 0, 0644},
		{"chatterbox_loop.py", python_chatterbox_loop, 0, 0644},
		{"chatterbox_prepare.py", python_chatterbox_prepare, 0, 0644},
		{"chatterbox_weights.py", python_chatterbox_weights, 0, 0644},
		{"chatterbox_slots.py", python_chatterbox_slots, 0, 0644},
		{"chatterbox_sound.py", python_chatterbox_sound, 0, 0644},
		{"chatterbox_t3.py", python_chatterbox_t3, 0, 0644},
		{"engine_kokoro.py", python_kokoro, 0, 0644},
		{"kokoro_batch.py", python_kokoro_batch, 0, 0644},
		{"kokoro_text.py", python_kokoro_text, 0, 0644},
		{"engine_qwen3.py", python_qwen3, 0, 0644},
		{"qwen3_blocks.py", python_qwen3_blocks, 0, 0644},
		{"qwen3_talk.py", python_qwen3_talk, 0, 0644},
		{"burst_weights.py", python_weights, 0, 0644},
		{"chatterbox.txt", lock_chatterbox, 0, 0644},
		{"kokoro.txt", lock_kokoro, 0, 0644},
		{"kokoro-source.txt", lock_kokoro_source, 0, 0644},
		{"piper.txt", lock_piper, 0, 0644},
		{"piper-joe.txt", lock_piper_joe, 0, 0644},
		{"piper-voice.txt", lock_piper_voice, 0, 0644},
		{"qwen3.txt", lock_qwen3, 0, 0644},
		{"qwen3-source.txt", lock_qwen3_source, 0, 0644},
		{"torchaudio.txt", lock_torchaudio, 0, 0644},
		{"uv.txt", lock_uv, 0, 0644},
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (!strcmp(files[i].name, name)) {
			files[i].len = strlen(files[i].data);
			return &files[i];
		}
	return NULL;
}
