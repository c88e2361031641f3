/* hook_record.c - the last trigger of a job, in the ledger. */
#include "hook.h"

#include <stdlib.h>

#include "base/crypto.h"
#include "base/jsonx.h"

enum { RECORD_MAX_BYTES = 4096 };

static void fact_name(const char *path, char name[64])
{
	char key[SHA256_NAME];

	sha256_name(path, key);
	snprintf(name, 64, "hook:%s", key);
}

json_t *hook_recorded(struct store *store, const char *path)
{
	char name[64], text[RECORD_MAX_BYTES];

	fact_name(path, name);
	return store_fact(store, name, text, sizeof(text)) ? jsonx_parse(text, strlen(text), NULL)
							   : NULL;
}

int hook_record(struct store *store, const char *path, const json_t *record, struct err *err)
{
	CLEANUP(free_text) char *line = jsonx_line(record);
	char name[64];

	fact_name(path, name);
	return store_put_fact(store, name, line, err);
}
