/* fuzz_pull.c - any bytes as a pod's log, from which the progress of its image is read. */
#include <assert.h>
#include <stdint.h>

#include "base/str.h"
#include "engine/vendor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	str_addn(&text, data, len);
	int percent = pull_percent(str_text(&text));
	assert(percent >= -1 && percent <= 100);
	return 0;
}
