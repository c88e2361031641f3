/* ssh_config.c - `burst ssh-config`: lets ssh and editors reach a pod by a host name. */
#include "cmd.h"

#include "base/path.h"
#include "cmd/show/output.h"
#include "cmd/ssh/way.h"
#include "runs/runs.h"

static int run_config(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(ctx->state_dir, "ssh_config");
	CLEANUP(way_free) struct way w = {.dir = NULL};

	if (named_pod(ctx->store, ctx->args[0], &w.pod, err) < 0 || way_open(ctx, &w, err) < 0)
		return -1;
	if (host_entries_write(ctx, path, err) < 0 || host_entries_include(ctx, path, err) < 0)
		return -1;
	output_line(stdout, "burst-%s", pod_row_called(&w.pod));
	return cmd_flush(err);
}

const struct cmd cmd_ssh_config = {
	.name = "ssh-config",
	.args = "POD",
	.min_args = 1,
	.max_args = 1,
	.summary = "let ssh and editors reach a pod by a host name",
	.details = "Writes an entry for each pod that can be reached into ssh_config in burst's "
		   "state folder, adds a line to ~/.ssh/config "
		   "that includes it, where there is none yet (it asks; -y adds it), and prints "
		   "the host's name: `ssh burst-POD`, and the same "
		   "name in an editor that works over ssh.",
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run_config,
};
