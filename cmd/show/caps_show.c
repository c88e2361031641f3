/* caps_show.c - prints what is left of caps over runs. */
#include "base/clock.h"
#include "caps_show.h"
#include "report.h"

void caps_show(FILE *to, const struct caps *caps)
{
	char left[32];

	for (size_t i = 0; caps && i < caps->count; i++) {
		CLEANUP(str_free) struct str used = STR_INIT;
		allow_say_used(&used, &caps->list[i]);
		fprintf(to, "%s (caps.%s), %s is left\n", str_text(&used), caps->list[i].key,
			money_show(left, sizeof(left), allow_left(&caps->list[i])));
	}
}

json_t *caps_to_json(const struct caps *caps)
{
	json_t *list = json_array();

	for (size_t i = 0; caps && i < caps->count; i++) {
		const struct allowance *a = &caps->list[i];
		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "cap", a->key, "of",
				  a->project ? "project" : "all", "limit_usd",
				  report_dollars(a->cap_microusd), "spent_usd",
				  report_dollars(a->spent_microusd), "reserved_usd",
				  report_dollars(a->reserved_microusd), "left_usd",
				  report_dollars(allow_left(a)), "until", report_time(a->ends_ms)));
	}
	return list;
}
