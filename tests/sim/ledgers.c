/* ledgers.c - ledgers in memory, used again: to make one takes as long as half a schedule. */
#include "ledgers.h"

#include <stdlib.h>

#include "store/store_impl.h"

enum { SPARE_MOST = 8 };
static struct store *spare[SPARE_MOST];
static int spare_count;

struct store *ledger_take(void)
{
	return spare_count ? spare[--spare_count] : store_memory();
}

static void empty(struct store *s)
{
	char sql[40];

	for (int i = 0; i < TABLE_COUNT; i++) {
		if (!s->put[i]) /* nothing was ever written there */
			continue;
		snprintf(sql, sizeof(sql), "DELETE FROM %s", store_tables[i].name);
		if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK)
			abort();
	}
}

void ledger_give(struct store *s)
{
	if (s)
		store_rollback(s);
	if (s && spare_count < SPARE_MOST) {
		empty(s);
		spare[spare_count++] = s;
	} else {
		store_close(s);
	}
}
