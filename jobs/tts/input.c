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

static const char *extension(const char *path)
{
	const char *dot = strrchr(path_base(path), '.');

	return dot ? dot + 1 : "";
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
	return !strcasecmp(word, a) || !strcasecmp(word, b);
}

static bool is_utf16(const struct str *text)
{
	return text->len >= 2 &&
	       (!memcmp(text->s, "\xff\xfe", 2) || !memcmp(text->s, "\xfe\xff", 2));
}

/* Removes UTF-8's byte-order mark. ERR_CONFIG: the text is UTF-16. */
static int drop_byte_order_mark(const char *name, struct str *text, struct err *err)
{
	if (is_utf16(text))
		return err_set(err, ERR_CONFIG, "%s: is UTF-16; save it as UTF-8", name);
	if (text->len >= 3 && !memcmp(text->s, "\xef\xbb\xbf", 3))
		str_drop(text, 3);
	return 0;
}

static bool is_known_extension(const char *ext)
{
	return is_one_of(ext, "txt", "text") || is_one_of(ext, "jsonl", "ndjson") ||
	       is_one_of(ext, "csv", "tsv") || is_one_of(ext, "md", "markdown");
}

/* Reads the file by the reader that its ending names; Markdown's if the ending is unknown. */
static int read_file(struct script *s, const char *path, const char *name, enum input_mode mode,
		     struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	const char *ext = extension(path), *source = script_add_source(s, name);

	if (job_read_member(s->job_setup, "input", path, INPUT_MAX_BYTES, &text, err) < 0)
		return err_wrap(err, "input");
	if (drop_byte_order_mark(name, &text, err) < 0 ||
	    file_kind_check_spoken(name, str_text(&text), text.len, is_known_extension(ext), err) <
		    0)
		return -1;
	if (input_is_exported_table(str_text(&text), text.len))
		input_read_table(s, source, str_text(&text), text.len, !strcasecmp(ext, "tsv"));
	else if (is_one_of(ext, "txt", "text"))
		input_read_text(s, source, str_text(&text), text.len, mode);
	else if (is_one_of(ext, "jsonl", "ndjson"))
		input_read_jsonl(s, source, str_text(&text), text.len);
	else if (is_one_of(ext, "csv", "tsv"))
		input_read_table(s, source, str_text(&text), text.len, !strcasecmp(ext, "tsv"));
	else
		input_read_markdown(s, source, str_text(&text), text.len);
	return 0;
}

static int is_text_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && !strcasecmp(extension(entry->d_name), "txt");
}

/* Compares names without their ".txt", as people list them: "Chapter" comes before "Chapter 2". */
static int by_natural_order(const struct dirent **a, const struct dirent **b)
{
	const char *x = (*a)->d_name, *y = (*b)->d_name;
	int order = natural_order_n(x, strlen(x) - strlen(".txt"), y, strlen(y) - strlen(".txt"));

	return order ? order : strcmp(x, y);
}

/* Reads a whole file as one item and one chapter. Its name without .txt is the id and the title. */
static int read_chapter_file(struct script *s, const char *dir, const char *dir_name,
			     const char *file, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(free_text) char *path = path_join(dir, file);
	CLEANUP(free_text) char *name = path_join(dir_name, file);
	struct script_item item = {.source = script_add_source(s, name), .line = 1};

	if (job_read_member(s->job_setup, "input", path, INPUT_MAX_BYTES, &text, err) < 0 ||
	    drop_byte_order_mark(name, &text, err) < 0)
		return -1;
	item.id = xstrndup(file, strlen(file) - strlen(".txt"));
	item.chapter = script_add_chapter(s, item.id);
	script_add(s, &item, str_text(&text), text.len);
	return 0;
}

/* Returns -1 with the reason in errno. */
static int refuse_missing_input(const char *name, struct err *err)
{
	err_set(err, ERR_CONFIG, "job.input: %s: %s", name, strerror(errno));
	return err_about(err, "job.input");
}

static int read_folder(struct script *s, const char *path, const char *name, struct err *err)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_text_file, by_natural_order), result = 0;

	if (count < 0)
		return refuse_missing_input(name, err);
	for (int i = 0; i < count; i++) {
		if (result == 0)
			result = read_chapter_file(s, path, name, entries[i]->d_name, err);
		free(entries[i]);
	}
	free(entries);
	if (result == 0 && count == 0)
		return err_set(err, ERR_CONFIG, "%s: no .txt file is in this folder", name);
	return result;
}

int script_load(struct script *s, const char *path, const char *name, enum input_mode mode,
		const struct split_limits *limits, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return refuse_missing_input(name, err);
	if ((S_ISDIR(st.st_mode) ? read_folder(s, path, name, err)
				 : read_file(s, path, name, mode, err)) < 0)
		return -1;
	return script_end(s, name, limits, err);
}
