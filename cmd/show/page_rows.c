/* page_rows.c - reads from the ledger what the page of `burst report` shows. */
#include "page.h"

#include <stdlib.h>

#include "base/clock.h"
#include "runs/runs.h"

void page_time(char to[24], int64_t wall_ms)
{
	char full[32];

	clock_rfc3339(full, sizeof(full), wall_ms);
	full[10] = ' ';
	snprintf(to, 24, "%.16s", full);
}

double page_dollars(int64_t microusd)
{
	return (double)microusd / 1e6;
}

int page_pods_that_worked(const struct page *p, const char *run)
{
	int count = 0;

	for (size_t i = 0; i < p->pod_count; i++)
		count += !strcmp(p->pods[i].run, run) && p->pods[i].compute_ms > 0;
	return count;
}

static double audio_of(struct store *store, const char *run)
{
	struct segment_row *rows = NULL;
	size_t count = 0;
	double seconds = 0;

	if (store_segments(store, run, &rows, &count, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		seconds += rows[i].state == SEGMENT_ROW_SAFE ? rows[i].seconds : 0;
	free(rows);
	return seconds;
}

static void add_pods(struct page *p, const char *run)
{
	struct pod_row *rows = NULL;
	size_t count = 0;

	if (store_pods(p->ctx->store, run, false, &rows, &count, NULL) < 0)
		return;
	p->pods = xrealloc(p->pods, (p->pod_count + count + 1) * sizeof(*p->pods));
	for (size_t i = 0; i < count; i++)
		if (rows[i].create_ms > 0)
			p->pods[p->pod_count++] = rows[i];
	free(rows);
}

/* Fills up to two rows: a run and its delivery, which the run's totals include. */
static int find_with_delivery(struct page *p, const char *name, struct run_row rows[2],
			      size_t *count, struct err *err)
{
	struct delivery_total total;

	if (named_run(p->ctx->store, name, &rows[0], err) < 0 ||
	    delivery_total(&p->ctx->runs, &rows[0], p->now_ms, &total, err) < 0)
		return -1;
	*count = 1;
	if (total.deliveries && store_run(p->ctx->store, total.newest, &rows[1], err) < 0)
		return -1;
	*count += total.deliveries > 0;
	return 0;
}

int page_gather(struct page *p, const char *run, int64_t since_ms, struct err *err)
{
	struct run_row *rows = NULL;
	size_t count = 0;

	if (run) {
		rows = xcalloc(2, sizeof(*rows));
		if (find_with_delivery(p, run, rows, &count, err) < 0) {
			free(rows);
			return -1;
		}
	} else if (store_runs(p->ctx->store, NULL, false, 0, &rows, &count, err) < 0) {
		return -1;
	}
	p->runs = xcalloc(count + 1, sizeof(*p->runs));
	p->audio_s = xcalloc(count + 1, sizeof(*p->audio_s));
	for (size_t i = 0; i < count; i++) {
		if (!run && rows[i].started_ms < since_ms)
			continue;
		if (run_so_far(&p->ctx->runs, &rows[i], p->now_ms, err) < 0 ||
		    run_sum(&p->ctx->runs, &rows[i], p->now_ms, err) < 0) {
			free(rows);
			return -1;
		}
		p->audio_s[p->count] = audio_of(p->ctx->store, rows[i].id);
		p->runs[p->count++] = rows[i];
		add_pods(p, rows[i].id);
	}
	free(rows);
	return 0;
}
