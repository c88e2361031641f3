/* desk.c - what several verbs of the local cloud share. */
#include "desk.h"

#include "base/path.h"
#include "pod.h"

int64_t desk_sweep(const struct store *store)
{
	CLEANUP(record_free_ids) char **ids = record_living(store);
	int64_t living = 0;

	for (size_t i = 0; ids[i]; i++) {
		CLEANUP(free_text) char *dir = record_dir(store, ids[i]);
		(void)pod_settle(store, ids[i], NULL);
		living += path_exists(dir);
	}
	return living;
}

json_t *desk_printable_lines(const struct str *raw)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	const char *at = str_text(raw), *end = at + raw->len, *line;
	size_t len;

	while ((line = bytes_next_line(&at, end, &len))) {
		str_add_printable(&text, line, len, 0);
		str_addc(&text, '\n');
	}
	return json_string(str_text(&text));
}
