/* fuzz_toml.c - any bytes as a vendor's credential file. */
#include <assert.h>
#include <stdint.h>

#include "base/str.h"
#include "config/secrets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool take_pair(void *ctx, const char *table, const char *key, const char *value)
{
	assert(utf8_valid(table, strlen(table)) && utf8_valid(key, strlen(key)) &&
	       utf8_valid(value, strlen(value)));
	++*(int *)ctx;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct err err = {0};
	int pairs = 0;

	str_addn(&text, data, len);
	if (toml_read(str_text(&text), text.len, "f.toml", take_pair, &pairs, &err) < 0)
		assert(err.kind == ERR_CREDENTIALS && err.msg[0]);
	return 0;
}
