/* doctor.c - `burst doctor`: checks this machine, the keys, the balance and the providers' offers.
 */
#include "cmd/doctor/checks.h"
#include "cmd/show/report.h"

static int run(struct cmd_context *ctx, struct err *err)
{
	struct findings f = {0};
	struct launch l;

	check_machine(ctx, &f);
	check_ledger(ctx, &f);
	launch_init(&l, ctx);
	check_job(&l, &f);
	if (launch_open_providers(&l, err) < 0) {
		findings_say(&f, "bad", "%s", err->msg);
		err_clear(err);
	}
	for (int i = 0; i < l.run.setup.provider_count; i++) {
		check_provider(&l, i, &f);
		check_volume(&l, i, &f);
	}
	if (l.run.setup.provider_count > 1 && !f.usable)
		findings_say(&f, "bad", "none of these providers is ready to rent from");
	check_unnamed(&l, &f);
	check_voice(ctx, &f);
	launch_free(&l);
	printf("     until a pod's container runs, only `burst` and `burst reap` can release "
	       "it; after that it ends itself\n");
	report_volumes(ctx->store, stdout, NULL, NULL);
	return cmd_flush(err) < 0 ? -1 : f.bad > 0;
}

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "check these providers", "provider", false},
	{0, "forget-cards", NULL, "try GPUs again that could not run the job's image", NULL, false},
	{0, "allow-path", "DIR", "let the project read, sync and write to this folder, too",
	 "allow_paths", false},
	{0},
};

const struct cmd cmd_doctor = {
	.name = "doctor",
	.summary = "check what a run needs, here and at the providers",
	.details = "Exit status 1 if something would stop a run.",
	.opts = opts,
	.needs = NEED_LEDGER | NEED_CONFIG | CHECKS_ALL,
	.group = CMD_GROUP_SETUP,
	.run = run,
};
