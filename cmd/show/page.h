/* page.h - what `burst report` tells of runs: as JSON, and as an HTML page that draws it. */
#ifndef BURST_CMD_SHOW_PAGE_H
#define BURST_CMD_SHOW_PAGE_H

#include <jansson.h>

#include "cmd/cmd.h"
#include "store/store.h"

/* What the user requested, for each time that the page is made. */
struct page_wish {
	struct cmd_context *ctx;
	const char *run; /* NULL: all */
	int64_t since_ms;
	bool live;    /* with current activity: active runs, pods that bill */
	size_t count; /* of runs, in the last page */
};

/* The object of `report --json` (tests/schema), a new reference; sets w->count. NULL with *err if
 * the run is unknown or the ledger unreadable. */
json_t *page_json(struct page_wish *w, struct err *err);
/* Appends the page with this data, which it takes. nonce NULL: a file, with a policy of its own;
 * else the server gives the policy, and only scripts with this nonce run. */
void page_html(struct str *to, json_t *data, const char *nonce);

#endif
