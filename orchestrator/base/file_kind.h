/* file_kind.h - tells a file's kind from its first bytes, and refuses unusable kinds. */
#ifndef BURST_BASE_FILE_KIND_H
#define BURST_BASE_FILE_KIND_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"

/* Formats of a script. */
enum spoken {
	SPOKEN_NONE,
	SPOKEN_TEXT,
	SPOKEN_MARKDOWN,
	SPOKEN_JSONL,
	SPOKEN_CSV,
	SPOKEN_TSV,
	SPOKEN_HTML,
	SPOKEN_SUBTITLES, /* SRT or WebVTT */
	SPOKEN_EPUB,
};

/* What the ending of a name says; SPOKEN_NONE: nothing. */
enum spoken file_spoken_by_name(const char *name);
/* The length of that ending, with its dot; 0: it says nothing. */
size_t file_spoken_ending(const char *name);
/* Decides the format by the name, or if that says nothing by the content. bytes: the file's first 4
 * KiB, or all. ERR_CONFIG says what the file is and what to do. */
int file_spoken(const char *name, const char *bytes, size_t len, enum spoken *out, struct err *err);
/* Refuses a file that cannot be a burst.cfg. A file called .cfg may hold any text. */
int file_kind_check_config(const char *name, const char *bytes, size_t len, struct err *err);

#endif
