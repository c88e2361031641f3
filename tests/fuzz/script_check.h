/* script_check.h - what holds for each script that a reader has accepted, for the fuzzers. */
#ifndef BURST_TESTS_SCRIPT_CHECK_H
#define BURST_TESTS_SCRIPT_CHECK_H

#include <assert.h>

#include "jobs/text/script.h"

/* Ends the script, and checks its items. lines: of the source; SIZE_MAX: unknown. also: of the text
 * of each item; NULL: nothing. */
static inline void check_script(struct script *s, size_t lines, void (*also)(const char *text))
{
	const struct split_limits limits = {30, 8};
	struct err err = {0};

	if (script_end(s, "f", &limits, &err) < 0) {
		assert(err.kind == ERR_CONFIG && err.msg[0]);
		return;
	}
	for (size_t i = 0; i < s->count; i++) {
		const struct script_item *item = &s->items[i];
		assert(!script_path_fault(item->id) && utf8_valid(item->text, strlen(item->text)));
		assert(split_has_words(item->text) && item->line > 0 && item->line <= lines);
		assert(item->chapter < (int)s->chapter_count);
		assert(item->end_s >= item->begin_s);
		if (also)
			also(item->text);
	}
	for (size_t i = 0; i < s->chapter_count; i++)
		assert(utf8_valid(s->chapters[i], strlen(s->chapters[i])));
}

#endif
