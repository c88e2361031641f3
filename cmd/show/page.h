/* page.h - the parts of the page of `burst report`. */
#ifndef BURST_CMD_SHOW_PAGE_H
#define BURST_CMD_SHOW_PAGE_H

#include "cmd/cmd.h"
#include "html.h"
#include "store/store.h"

struct page {
	struct cmd_context *ctx;
	struct str html;
	struct run_row *runs; /* newest first */
	size_t count;
	struct pod_row *pods; /* of all these runs */
	size_t pod_count;
	double *audio_s; /* for each run */
	int64_t now_ms;
	bool one; /* a single run */
};

/* What the user requested, for each time that the page is made. */
struct page_wish {
	struct cmd_context *ctx;
	const char *run; /* NULL: all */
	int64_t since_ms;
	size_t count; /* of runs, in the last page */
};

/* Makes the whole page from the ledger in html, which must be empty; sets w->count. nonce NULL: a
 * file; else a page that is kept up to date. Returns -1 with *err if the run is unknown or the
 * ledger unreadable. */
int page_build(struct page_wish *w, struct str *html, const char *nonce, struct err *err);

/* Reads the runs since then, or a single one, with their pods. Errors as in page_build(). */
int page_gather(struct page *p, const char *run, int64_t since_ms, struct err *err);
void page_time(char to[24], int64_t wall_ms); /* "2026-11-25 03:06" */
double page_dollars(int64_t microusd);
int page_pods_that_worked(const struct page *p, const char *run);

/* Adds current activity: runs that have not ended, and pods that bill. */
void page_add_now(struct page *p);
/* Adds the script that keeps the page up to date, with this nonce. */
void page_add_live(struct page *p, const char *nonce);

/* Adds cost per segment by number of pods and by GPU, predicted and measured, and what would have
 * been cheaper than the newest run. */
void page_add_curves(struct page *p);
/* Adds spending by day, provider and GPU. */
void page_add_spending(struct page *p);
void page_add_audio(struct page *p);
/* Adds planned and actual cost, run by run. */
void page_add_planned(struct page *p);

#endif
