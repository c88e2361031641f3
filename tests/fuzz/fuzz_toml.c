/* fuzz_toml.c - any bytes as a vendor's credential file. */
#include <assert.h>
#include <stdint.h>

#include "base/str.h"
#include "config/secrets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct toml toml = {0};
	struct err err = {0};

	str_addn(&text, data, len);
	if (toml_read(&toml, str_text(&text), text.len, "f.toml", &err) < 0)
		assert(err.kind == ERR_CREDENTIALS && err.msg[0]);
	for (size_t i = 0; i < toml.count; i++) {
		const struct toml_pair *p = &toml.list[i];
		assert(utf8_valid(p->table, strlen(p->table)) &&
		       utf8_valid(p->key, strlen(p->key)) &&
		       utf8_valid(p->value, strlen(p->value)));
	}
	toml_free(&toml);
	return 0;
}
