/* phase.c - derives a pod's phase from the times in its row. */
#include "phase.h"

#include <string.h>

enum pod_phase phase_of_row(const struct pod_row *row)
{
	const struct {
		int64_t since_ms;
		enum pod_phase phase;
	} times[] = {{row->released_ms, POD_CONFIRMING}, {row->release_ms, POD_RELEASING},
		     {row->ready_ms, POD_WORKING},       {row->synced_ms, POD_LOADING},
		     {row->connected_ms, POD_PREPARING}, {row->reached_ms, POD_CONNECTING}};

	if (row->state == POD_ROW_GONE)
		return POD_GONE;
	if (row->state == POD_ROW_FAILED)
		return POD_NEVER;
	if (row->state == POD_ROW_AMBIGUOUS)
		return POD_AMBIGUOUS;
	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (times[i].since_ms > 0)
			return times[i].phase;
	if (row->state == POD_ROW_RELEASING)
		return POD_RELEASING;
	return row->id[0] ? POD_BOOTING : POD_RENTING;
}

const char *phase_word(const struct pod_row *row)
{
	bool kept = row->kept_ms > 0 && !row->release_ms && row->state == POD_ROW_LIVE;

	return kept ? "kept" : pod_phase_name(phase_of_row(row));
}
