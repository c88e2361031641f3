/* job.c - checks the job of this folder, and the volumes that it may use. */
#include "checks.h"

#include "cmd/launch/volume_trust.h"

void check_job(struct launch *l, struct findings *f)
{
	struct err err = {0};
	size_t count;

	if (!config_job(l->ctx->config))
		return;
	if (launch_peek_job(l, &err) < 0) {
		const struct mistakes *m = &l->ctx->mistakes;
		for (size_t i = 0; i < m->count; i++)
			findings_say(f, "bad", "%s", m->list[i].err.msg);
		if (!m->count)
			findings_say(f, "bad", "%s", err.msg);
		/* its offers can be reported without the job, unless the job could not be read */
		if (!l->run.output_dir)
			launch_read_job(l, &err);
		return;
	}
	l->run.setup.job_ops->segments(l->run.setup.job, &count);
	findings_say(f, "ok", "job \"%s\": %zu segment%s", config_job_name(l->ctx->config), count,
		     count == 1 ? "" : "s");
}

void check_volume(struct launch *l, int provider, struct findings *f)
{
	struct err why = {0};

	if (config_job(l->ctx->config) && volume_trust_check(l, provider, &why) < 0 &&
	    why.kind == ERR_CONFIG)
		findings_say(f, "bad", "%s", why.msg);
}

void check_voice(const struct cmd_context *ctx, struct findings *f)
{
	const struct section *job = config_job(ctx->config);
	const char *engine = job && !strcmp(config_job_ops(ctx->config)->type, "tts")
				     ? section_text(job, "engine")
				     : NULL;
	bool espeak = engine && !strcmp(engine, "espeak") && !section_has(job, "worker");

	if (!f->accounts && (!job || espeak))
		findings_say(f, "",
			     "a neural voice needs no GPU and no account: job.engine = \"piper\" "
			     "(jobs/README.md)");
}
