/* write_off.c - closes pods in the ledger whose provider cannot be reached. */
#include "runs.h"

#include "base/clock.h"
#include "store/pod_cost.h"

int run_write_off(const struct runs *rs, struct pod_row *pod, struct err *err)
{
	int64_t now_ms = clock_wall_ms(), end_ms = MIN(now_ms, pod->hard_end_s * 1000);

	pod->gone_ms = pod->create_ms ? MAX(end_ms, pod->create_ms) : now_ms;
	pod_row_bill(pod, pod->gone_ms);
	pod->state = POD_ROW_GONE;
	COPY_TEXT(pod->error, "its provider could not be asked");
	return store_put_pod(rs->store, pod, err);
}

bool run_out_of_reach(const struct runs *rs, const struct pod_row *pod)
{
	struct engine_provider account = {0};
	struct err why = {0};

	if (rs->open_account(rs->ctx, pod->provider, &account, &why) == 0) {
		account.ops->close(account.handle);
		return false;
	}
	return !run_is_alive(rs, pod->run);
}

int run_write_off_unreleased(const struct runs *rs, struct pod_row *pod, struct err *err)
{
	struct run_row run;
	size_t count;

	if (run_write_off(rs, pod, err) < 0 || run_open_pods(rs, pod->run, &count, err) < 0)
		return -1;
	if (count || store_run(rs->store, pod->run, &run, NULL) < 0 || run.status != RUN_UNRELEASED)
		return 0;
	run_end(&run, run_ended_as(rs, &run));
	COPY_TEXT(run.error,
		  "a pod counts as gone without confirmation: its provider could not be asked");
	return store_put_run(rs->store, &run, err);
}
