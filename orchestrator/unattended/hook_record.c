/* hook_record.c - keeps the last trigger of a job in the ledger. */
#include "hook.h"

#include <stdlib.h>

#include "base/crypto.h"
#include "base/jsonx.h"
#include "store/facts.h"

enum { RECORD_MAX_BYTES = 4096 };

json_t *hook_recorded(struct store *store, const char *path)
{
	char key[SHA256_NAME], text[RECORD_MAX_BYTES];

	sha256_name(path, key);
	return fact_get(store, FACT_HOOK, key, NULL, text, sizeof(text))
		       ? jsonx_parse(text, strlen(text), NULL)
		       : NULL;
}

int hook_record(struct store *store, const char *path, const json_t *record, struct err *err)
{
	CLEANUP(free_text) char *line = jsonx_line(record);
	char key[SHA256_NAME];

	sha256_name(path, key);
	return fact_put(store, FACT_HOOK, key, NULL, line, err);
}
