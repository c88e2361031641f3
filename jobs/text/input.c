/* input.c - chooses the reader of an input file, and reads folders */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file_kind.h"
#include "base/pattern.h"
#include "base/path.h"
#include "jobs/common.h"
#include "script.h"

#define INPUT_MAX_BYTES ((size_t)256 << 20)

/* ---- a file, a folder ---- */

/* Rewrites UTF-16 as UTF-8. Returns false if it is damaged. */
static bool decode_utf16(struct str *text)
{
	CLEANUP(str_free) struct str to = STR_INIT;
	const unsigned char *p = (const unsigned char *)text->s, *end = p + text->len;
	size_t high = p[0] == 0xfe ? 0 : 1; /* the place of the high byte */

	for (p += 2; end - p >= 2; p += 2) {
		uint32_t c = (uint32_t)p[high] << 8 | p[1 - high];
		if (c >= 0xd800 && c < 0xdc00 && end - p >= 4) {
			uint32_t low = (uint32_t)p[2 + high] << 8 | p[3 - high];
			if (low < 0xdc00 || low > 0xdfff)
				return false;
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
			p += 2;
		} else if (c >= 0xd800 && c < 0xe000) {
			return false;
		}
		str_add_utf8(&to, c);
	}
	if (p != end)
		return false;
	str_reset(text);
	str_addn(text, str_text(&to), to.len);
	return true;
}

/* Makes UTF-8 without a byte-order mark of a text. ERR_CONFIG: UTF-16 that is damaged. */
static int decode(const char *name, struct str *text, struct err *err)
{
	bool utf16 = text->len >= 2 &&
		     (!memcmp(text->s, "\xff\xfe", 2) || !memcmp(text->s, "\xfe\xff", 2));

	if (utf16 && !decode_utf16(text))
		return err_set(err, ERR_CONFIG, "%s: is damaged UTF-16; save it as UTF-8", name);
	if (text->len >= 3 && !memcmp(text->s, "\xef\xbb\xbf", 3))
		str_drop(text, 3);
	return 0;
}

/* Refuses a text that is not UTF-8, with the command that most likely helps. */
static int check_encoding(const char *name, const struct str *text, struct err *err)
{
	const char *at = str_text(text), *end = at + text->len, *line;
	size_t len, number = 0;

	while (next_line(&at, end, &line, &len)) {
		CLEANUP(str_free) struct str quoted = STR_INIT;
		number++;
		if (utf8_valid(line, len) || memchr(line, '\0', len))
			continue;
		str_add_shell(&quoted, name);
		return err_set(err, ERR_CONFIG,
			       "%s:%zu: this is not UTF-8: save it as UTF-8, or, if it is "
			       "Windows-1252, `iconv -f WINDOWS-1252 -t UTF-8 %.200s >utf8%s`",
			       name, number, str_text(&quoted),
			       strrchr(path_base(name), '.') ? strrchr(path_base(name), '.') : "");
	}
	return 0;
}

/* Reads the file by the reader of its format. */
static int read_file(struct script *s, const char *path, const char *name, enum input_mode mode,
		     struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	const char *source = script_add_source(s, name);
	enum spoken format;

	if (job_read_member(s->job_setup, "input", path, INPUT_MAX_BYTES, &text, err) < 0)
		return err_wrap(err, "input");
	if (decode(name, &text, err) < 0 ||
	    file_spoken(name, str_text(&text), text.len, &format, err) < 0)
		return -1;
	if (format != SPOKEN_EPUB && format != SPOKEN_HTML && check_encoding(name, &text, err) < 0)
		return -1;
	const char *bytes = str_text(&text);
	if (input_is_exported_table(bytes, text.len))
		format = format == SPOKEN_TSV ? SPOKEN_TSV : SPOKEN_CSV;
	switch (format) {
	case SPOKEN_NONE:
	case SPOKEN_TEXT: input_read_text(s, source, bytes, text.len, mode); break;
	case SPOKEN_MARKDOWN: input_read_markdown(s, source, bytes, text.len); break;
	case SPOKEN_JSONL: input_read_jsonl(s, source, bytes, text.len); break;
	case SPOKEN_CSV:
	case SPOKEN_TSV: input_read_table(s, source, bytes, text.len, format == SPOKEN_TSV); break;
	case SPOKEN_HTML: input_read_html(s, source, bytes, text.len); break;
	case SPOKEN_SUBTITLES: input_read_subtitles(s, source, bytes, text.len); break;
	case SPOKEN_EPUB: input_read_epub(s, source, bytes, text.len); break;
	}
	return 0;
}

/* A README is about the folder. */
static int is_text_file(const struct dirent *entry)
{
	enum spoken format = file_spoken_by_name(entry->d_name);

	return entry->d_name[0] != '.' && strncasecmp(entry->d_name, "readme.", 7) != 0 &&
	       (format == SPOKEN_TEXT || format == SPOKEN_MARKDOWN);
}

/* Compares names without their endings, as people list them: "Chapter" comes before "Chapter 2". */
static int by_natural_order(const struct dirent **a, const struct dirent **b)
{
	const char *x = (*a)->d_name, *y = (*b)->d_name;
	int order = natural_order_n(x, strlen(x) - file_spoken_ending(x), y,
				    strlen(y) - file_spoken_ending(y));

	return order ? order : strcmp(x, y);
}

/* Reads a file of a folder: a chapter with its name, which is also the stem of the ids. Its own
 * headings begin further chapters. */
static int read_chapter_file(struct script *s, const char *dir, const char *dir_name,
			     const char *file, enum input_mode mode, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(free_text) char *path = path_join(dir, file);
	CLEANUP(free_text) char *name = path_join(dir_name, file);
	CLEANUP(free_text) char *title = xstrndup(file, strlen(file) - file_spoken_ending(file));
	const char *source = script_add_source(s, name);

	if (job_read_member(s->job_setup, "input", path, INPUT_MAX_BYTES, &text, err) < 0 ||
	    decode(name, &text, err) < 0 || check_encoding(name, &text, err) < 0)
		return -1;
	int chapter = script_add_chapter(s, title);
	size_t first = s->count;
	if (file_spoken_by_name(file) == SPOKEN_MARKDOWN)
		input_read_markdown(s, source, str_text(&text), text.len);
	else
		input_read_text(s, source, str_text(&text), text.len, mode);
	for (size_t i = first; i < s->count; i++) {
		s->items[i].stem = s->chapters[chapter];
		if (s->items[i].chapter < 0)
			s->items[i].chapter = chapter;
	}
	return 0;
}

/* Returns -1 with the reason in errno. */
static int refuse_missing_input(const char *name, struct err *err)
{
	err_set(err, ERR_CONFIG, "job.input: %s: %s", name, strerror(errno));
	return err_about(err, "job.input");
}

static int read_folder(struct script *s, const char *path, const char *name, enum input_mode mode,
		       struct err *err)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_text_file, by_natural_order), result = 0;

	if (count < 0)
		return refuse_missing_input(name, err);
	for (int i = 0; i < count; i++) {
		if (result == 0)
			result = read_chapter_file(s, path, name, entries[i]->d_name, mode, err);
		free(entries[i]);
	}
	free(entries);
	if (result == 0 && count == 0)
		return err_set(err, ERR_CONFIG, "%s: no .txt or .md file is in this folder", name);
	return result;
}

int script_load(struct script *s, const char *path, const char *name, enum input_mode mode,
		const struct split_limits *limits, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return refuse_missing_input(name, err);
	if ((S_ISDIR(st.st_mode) ? read_folder(s, path, name, mode, err)
				 : read_file(s, path, name, mode, err)) < 0)
		return -1;
	return script_end(s, name, limits, err);
}
