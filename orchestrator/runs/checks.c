/* checks.c - checks before anything is rented whether a run can succeed: descriptors, money, files,
 * other runs of its job. */
#include <stdlib.h>

#include "base/guard.h"
#include "impl.h"

/* ---- descriptors ---- */

int run_check_width(struct run *run, int64_t pods, struct err *err)
{
	long limit = files_raise();
	int open = files_open(), fit = engine_pods_fit(limit, open);

	run->setup.files = limit - open;
	if (pods <= fit)
		return 0;
	err_set(err, ERR_CONFIG,
		"pods: %lld are too many: this process may open %ld files (`ulimit -n`), enough "
		"for %d pods; ask for fewer, or raise that limit",
		(long long)pods, limit, fit);
	return err_about(err, "pods");
}

/* ---- money ---- */

enum { BALANCE_MS = 10000 };

int run_check_balance(const struct run *run, int64_t cap_microusd, struct err *err)
{
	const struct engine_setup *s = &run->setup;
	struct err worst = {0};
	bool one_can_pay = false;

	for (int i = 0; i < s->provider_count; i++) {
		const struct engine_provider *p = &s->providers[i];
		struct op_result result = {.balance_microusd = -1};
		struct err why = {0};
		bool known = caller_perform(p, OP_BALANCE, NULL, BALANCE_MS, &result, &why) == 0 &&
			     result.balance_microusd >= 0;
		int64_t balance = result.balance_microusd;
		op_result_free(&result);
		if (!known || balance >= cap_microusd) {
			/* renting will show what cannot be checked now */
			one_can_pay = true;
			continue;
		}
		err_set(&worst, ERR_BALANCE,
			"%s: the balance of $%.2f cannot pay this run's cap of $%.2f: add credit, "
			"or lower caps.max_cost",
			p->ops->name, (double)balance / 1e6, (double)cap_microusd / 1e6);
		if (s->provider_count > 1)
			runs_note(run->runs, LOG_WARN, "%s", worst.msg);
	}
	return one_can_pay || !s->provider_count ? 0 : err_set(err, worst.kind, "%s", worst.msg);
}

/* ---- files without a pod ---- */

/* Tries separate keys for files before anything is rented, since pods would rely on them. The run
 * itself finds other faults. */
int run_check_files(const struct run *run, const char *volume, struct err *err)
{
	const struct engine_setup *s = &run->setup;
	struct op_want want = {.volume = {.name = volume, .prove_files = true}};

	for (int i = 0; i < s->provider_count && volume && *volume; i++) {
		const struct engine_provider *p = &s->providers[i];
		struct op_result result = {0};
		struct err why = {0};
		if (!p->ops->files_ready || !p->ops->files_ready(p->handle, NULL))
			continue;
		bool fine = caller_perform(p, OP_VOLUME, &want, BALANCE_MS, &result, &why) == 0 ||
			    why.kind != ERR_CREDENTIALS;
		op_result_free(&result);
		if (!fine && s->provider_count == 1) {
			*err = why;
			return err_wrap(err, "%s", p->ops->name);
		}
		if (!fine)
			runs_note(run->runs, LOG_WARN, "%s: %s", p->ops->name, why.msg);
	}
	return 0;
}

/* ---- other runs of the job ---- */

int runs_check_detached(const struct runs *rs, const char *config, const char *job, struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0;
	int result = 0;

	if (store_runs(rs->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++) {
		const struct run_row *r = &runs[i];
		if (!r->detached || strcmp(r->config, config) || strcmp(r->job, job))
			continue;
		result = err_set(err, ERR_BUSY,
				 "job \"%s\" is already running: pods of the detached run %s "
				 "work on it (`burst attach %s` fetches its files, `burst "
				 "cancel %s` ends it)",
				 r->job, r->id, r->id, r->id);
	}
	free(runs);
	return result;
}
