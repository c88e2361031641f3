/* fuzz_epub.c - any bytes as a book, or as the documents of one; as an HTML page; as subtitles.
 * What is accepted must be whole.
 *
 * The first byte chooses the reader, and whether numbers of lists are spoken and who A is. Of a
 * book made here, a byte 0xff separates the documents. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "jobs/text/script.h"
#include "script_check.h"
#include "tests/unit/zip_make.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char *const names[] = {"META-INF/container.xml",
				    "META-INF/encryption.xml",
				    "b.opf",
				    "nav.xhtml",
				    "toc.ncx",
				    "a.xhtml",
				    "c.png"};

static void make_book(struct str *to, const char *bytes, size_t len)
{
	static const char container[] = "<container><rootfile full-path='b.opf'/></container>";
	struct zip_part parts[ARRAY_LEN(names)];
	const char *end = bytes + len;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *stop = memchr(bytes, '\xff', (size_t)(end - bytes));
		stop = stop ? stop : end;
		parts[i] = (struct zip_part){names[i], bytes, (size_t)(stop - bytes)};
		bytes = stop < end ? stop + 1 : end;
	}
	if (!parts[0].len)
		parts[0] = (struct zip_part){names[0], container, sizeof(container) - 1};
	/* an empty encryption.xml would end each book */
	if (!parts[1].len)
		parts[1].name = "x";
	zip_make(to, parts, ARRAY_LEN(names), 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CLEANUP(script_free) struct script s = {0};
	CLEANUP(str_free) struct str book = STR_INIT;
	CLEANUP(free_text) char *text = NULL;
	struct speakers speakers = {0};

	if (!len || len > 1 << 16)
		return 0;
	const char *source = script_add_source(&s, "f");
	s.list_numbers = *data & 0x20;
	if (*data & 0x40 && speakers_add(&speakers, "A=a", NULL) == 0)
		s.speakers = &speakers;
	text = xmalloc(len);
	memcpy(text, data + 1, len - 1);
	text[len - 1] = '\0';
	switch (*data % 5) {
	case 0: input_read_epub(&s, source, text, len - 1); break;
	case 1:
		make_book(&book, text, len - 1);
		input_read_epub(&s, source, book.s, book.len);
		break;
	case 2: input_read_html(&s, source, text, len - 1); break;
	case 3: input_read_subtitles(&s, source, text, len - 1); break;
	case 4: {
		struct script_item item = {.source = source, .line = 1, .chapter = -1};
		script_add_marked(&s, &item, text, len - 1);
		break;
	}
	}
	check_script(&s, SIZE_MAX, NULL);
	speakers_free(&speakers);
	return 0;
}
