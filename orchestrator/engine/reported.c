/* reported.c - checks what a pod reports of a finished file. */
#include "reported.h"

#include <string.h>

#include "base/jsonx.h"
#include "base/mem.h"
#include "base/path.h"

enum report_fault reported_file(const json_t *event, const char *name, int64_t most_bytes,
				struct reported_file *out)
{
	out->path = jsonx_text(event, "path", "");
	out->sha256 = jsonx_text(event, "sha256", "");
	out->bytes = jsonx_int(event, "bytes", -1);
	if (name && out->bytes > most_bytes)
		return REPORT_TOO_LARGE;
	if (!name || !path_may_be_output(name) || !path_is_safe(out->path) ||
	    !sha256_is_hex(out->sha256) || out->bytes < 0)
		return REPORT_INVALID;
	return REPORT_FINE;
}

void reported_fault_show(struct str *to, enum report_fault fault, int64_t bytes)
{
	if (fault == REPORT_TOO_LARGE)
		str_addf(to, "a file of %lld bytes, more than it can have", (long long)bytes);
	else
		str_add(to, "an invalid file");
}

double reported_seconds(const json_t *event)
{
	return MAX(jsonx_number(event, "seconds", 0), 0);
}

int reported_rate(const json_t *event)
{
	return (int)jsonx_bounded(event, "rate", 0, 1 << 24);
}

struct segment_row reported_row(const char *run, const struct segment *segment, const char *attempt,
				const char *file, const struct segment_result *result)
{
	struct segment_row row = {.state = SEGMENT_ROW_SAFE,
				  .bytes = result->bytes,
				  .seconds = result->seconds,
				  .sample_rate = result->sample_rate,
				  .tries = result->tries,
				  .suspect = result->suspect};

	COPY_TEXT(row.run, run);
	COPY_TEXT(row.id, segment->id);
	COPY_TEXT(row.key, segment->key);
	COPY_TEXT(row.attempt, attempt);
	COPY_TEXT(row.file, file ? file : "");
	COPY_TEXT(row.sha256, result->sha256);
	COPY_TEXT(row.reason, result->reason);
	return row;
}
