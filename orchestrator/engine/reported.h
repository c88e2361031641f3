/* reported.h - decides which reports of a pod on its finished files are believed, live or from the
 * event log on its volume. Pure. */
#ifndef BURST_ENGINE_REPORTED_H
#define BURST_ENGINE_REPORTED_H

#include <jansson.h>
#include <stdint.h>

#include "base/str.h"
#include "job.h"
#include "store/store.h"

enum { SPEECH_FILE_MAX_BYTES = 256 << 20 }; /* of one segment's file; commands may have more */

/* Texts are borrowed from the event. */
struct reported_file {
	const char *path, *sha256; /* where the pod has it */
	int64_t bytes;
};

enum report_fault { REPORT_FINE, REPORT_INVALID, REPORT_TOO_LARGE };

/* name: the file's local name; NULL: the report gives none. most_bytes: the largest size it can
 * have. A report that is not REPORT_FINE is refused, and its file not fetched. */
enum report_fault reported_file(const json_t *event, const char *name, int64_t most_bytes,
				struct reported_file *out);
/* "an invalid file", "a file of 12 bytes, more than it can have". */
void reported_fault_show(struct str *to, enum report_fault fault, int64_t bytes);
/* The reported length in seconds and sample rate of its sound, used if the check of the file finds
 * none. Never below 0. */
double reported_seconds(const json_t *event);
int reported_rate(const json_t *event);

/* The ledger's row of a segment whose file has its final name. file: NULL: it has none. */
struct segment_row reported_row(const char *run, const struct segment *segment, const char *attempt,
				const char *file, const struct segment_result *result);

#endif
