/* machine.c - checks this machine: its ledger, its render cache, its programs. */
#include "checks.h"

#include <stdlib.h>

#include "base/path.h"
#include "base/program.h"
#include "jobs/renders.h"

enum { LEDGER_ROOM_BYTES = 64 * 1000 * 1000 };

static void check_renders(const struct cmd_context *ctx, struct findings *f)
{
	CLEANUP(free_text) char *dir = config_renders_dir();
	int64_t limit_mb = section_int(config_top(ctx->config), "render_cache_mb");
	struct renders_size size;
	struct err err = {0};

	if (!dir || !limit_mb)
		findings_say(f, "ok", "no render cache");
	else if (renders_measure(dir, &size, &err) < 0)
		findings_say(f, "warn", "%s: the render cache is off", err.msg);
	else
		findings_say(f, "ok", "render cache in %s: %lld of %lld MB used", dir,
			     (long long)(size.bytes / 1000000), (long long)limit_mb);
}

void check_machine(struct cmd_context *ctx, struct findings *f)
{
	int64_t room = path_free_bytes(ctx->state_dir);

	if (room >= 0 && room < LEDGER_ROOM_BYTES)
		findings_say(f, "bad",
			     "%s: only %lld MB free; burst rents nothing that it cannot record",
			     ctx->state_dir, (long long)(room / 1000000));
	else
		findings_say(f, "ok", "ledger in %s", ctx->state_dir);
	check_renders(ctx, f);
	findings_say(f, program_found("ffmpeg") ? "ok" : "warn",
		     program_found("ffmpeg") ? "ffmpeg: joining can set the loudness"
					     : "ffmpeg is not installed: joined tracks keep their "
					       "loudness, and voice samples must be WAV files");
	findings_say(f, program_found("ssh") ? "ok" : "warn",
		     program_found("ssh")
			     ? "ssh: `burst ssh` works"
			     : "ssh is not installed: `burst ssh` does not work (rendering does)");
}

void check_ledger(struct cmd_context *ctx, struct findings *f)
{
	struct pod_row *pods = NULL;
	size_t count = 0, orphans = 0;

	if (store_pods(ctx->store, NULL, true, &pods, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		orphans += !run_is_alive(&ctx->runs, pods[i].run);
	free(pods);
	if (orphans)
		findings_say(f, "warn",
			     "%zu pod%s of runs without a client: `burst resume` or `burst reap`",
			     orphans, orphans == 1 ? "" : "s");
	else
		findings_say(f, "ok", "no pod without a client");
}
