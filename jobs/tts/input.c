/* input.c - chooses the reader of an input file, and reads the two simplest formats of a tts job.
 */
#include "script.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file_kind.h"
#include "base/jsonx.h"
#include "base/natural.h"
#include "base/path.h"
#include "jobs/common.h"

#define INPUT_MAX_BYTES ((size_t)256 << 20)

static bool is_blank(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (line[i] != ' ' && line[i] != '\t')
			return false;
	return true;
}

/* ---- plain text: a line or a paragraph each ---- */

/* A text has paragraphs if blank lines separate texts and one of them has more than one line. */
static enum input_mode guess_mode(const char *bytes, const char *end)
{
	const char *line;
	size_t len, run = 0, longest = 0, blocks = 0;

	for (const char *at = bytes; next_line(&at, end, &line, &len);) {
		run = is_blank(line, len) ? 0 : run + 1;
		blocks += run == 1;
		longest = MAX(longest, run);
	}
	return blocks > 1 && longest > 1 ? INPUT_PARAGRAPHS : INPUT_LINES;
}

static void end_paragraph(struct script *s, const char *source, size_t line, struct str *text)
{
	struct script_item item = {.source = source, .line = line, .chapter = -1, .prose = true};

	if (text->len)
		script_add(s, &item, str_text(text), text->len);
	str_reset(text);
}

void input_read_text(struct script *s, const char *source, const char *bytes, size_t len,
		     enum input_mode mode)
{
	const char *line, *end = bytes + len;
	CLEANUP(str_free) struct str text = STR_INIT;
	size_t n, number = 0, began = 0;

	if (mode == INPUT_AUTO)
		mode = guess_mode(bytes, end);
	for (const char *at = bytes; next_line(&at, end, &line, &n);) {
		number++;
		if (is_blank(line, n)) {
			end_paragraph(s, source, began, &text);
		} else if (mode == INPUT_LINES) {
			struct script_item item = {.source = source, .line = number, .chapter = -1};
			script_add(s, &item, line, n);
		} else {
			if (!text.len)
				began = number;
			else
				str_addc(&text, ' ');
			str_addn(&text, line, n);
		}
	}
	end_paragraph(s, source, began, &text);
}

/* ---- JSON lines ---- */

/* The fields of a line, removed from its object one by one. */
static bool take_id(struct script *s, struct script_item *item, json_t *object)
{
	json_t *id = json_object_get(object, "id");

	if (json_is_string(id))
		item->id = xstrdup(json_string_value(id));
	else if (json_is_integer(id))
		item->id = xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(id));
	else if (id && !json_is_null(id)) {
		script_complain(s, item->source, item->line, "\"id\" must be a text");
		return false;
	}
	return true;
}

/* Returns false after a complaint. So do the two below. */
static bool take_voice(struct script *s, struct script_item *item, json_t *object)
{
	json_t *voice = json_object_get(object, "voice");

	if (json_is_string(voice))
		item->voice = xstrdup(json_string_value(voice));
	else if (voice && !json_is_null(voice)) {
		script_complain(s, item->source, item->line, "\"voice\" must be a text");
		return false;
	}
	return true;
}

static bool take_seed(struct script *s, struct script_item *item, json_t *object)
{
	json_t *seed = json_object_get(object, "seed");

	item->has_seed = json_is_integer(seed);
	item->seed = json_integer_value(seed);
	if (seed && !json_is_null(seed) &&
	    (!item->has_seed || item->seed < 0 || item->seed > INT32_MAX)) {
		script_complain(s, item->source, item->line,
				"\"seed\" must be a whole number from 0 to 2147483647");
		return false;
	}
	return true;
}

static bool take_options(struct script *s, struct script_item *item, json_t *object)
{
	json_t *options = json_object_get(object, "options");

	if (json_is_object(options))
		item->options = json_incref(options);
	else if (options && !json_is_null(options)) {
		script_complain(s, item->source, item->line, "\"options\" must be an object");
		return false;
	}
	return true;
}

static void take_extra(struct script_item *item, json_t *object)
{
	static const char *const ours[] = {"id", "text", "voice", "seed", "options"};

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		json_object_del(object, ours[i]);
	if (json_object_size(object))
		item->extra = json_incref(object);
}

static void free_fields(struct script_item *item)
{
	free(item->id);
	free(item->voice);
	json_decref(item->options);
	json_decref(item->extra);
}

static void add_object(struct script *s, const char *source, size_t line, json_t *object)
{
	struct script_item item = {.source = source, .line = line, .chapter = -1};
	json_t *text = json_incref(json_object_get(object, "text"));

	if (!json_is_string(text)) {
		script_complain(s, source, line,
				text ? "\"text\" must be a text" : "there is no \"text\"");
	} else if (take_id(s, &item, object) && take_voice(s, &item, object) &&
		   take_seed(s, &item, object) && take_options(s, &item, object)) {
		take_extra(&item, object);
		script_add(s, &item, json_string_value(text), json_string_length(text));
	}
	free_fields(&item); /* script_add() has emptied the item if it took the fields */
	json_decref(text);
}

void input_read_jsonl(struct script *s, const char *source, const char *bytes, size_t len)
{
	const char *line, *end = bytes + len;
	size_t n, number = 0;

	for (const char *at = bytes; next_line(&at, end, &line, &n);) {
		struct err why = {0};
		number++;
		if (is_blank(line, n))
			continue;
		if (!utf8_valid(line, n)) {
			script_complain(s, source, number, "the line is not valid UTF-8");
			continue;
		}
		CLEANUP(json_decref) json_t *object = jsonx_parse(line, n, &why);
		if (!object) {
			CLEANUP(str_free) struct str clean = STR_INIT;
			str_add_printable(&clean, why.msg, strlen(why.msg), 200);
			script_complain(s, source, number, "%s", str_text(&clean));
			continue;
		}
		add_object(s, source, number, object);
	}
}

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

static int check_bytes(const char *name, struct str *text, struct err *err)
{
	if (is_utf16(text))
		return err_set(err, ERR_CONFIG, "%s: is UTF-16; save it as UTF-8", name);
	if (text->len >= 3 && !memcmp(text->s, "\xef\xbb\xbf", 3))
		str_drop(text, 3);
	return 0;
}

static bool is_known(const char *ext)
{
	return is_one_of(ext, "txt", "text") || is_one_of(ext, "jsonl", "ndjson") ||
	       is_one_of(ext, "csv", "tsv") || is_one_of(ext, "md", "markdown");
}

static int read_file(struct script *s, const char *path, const char *name, enum input_mode mode,
		     struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	const char *ext = extension(path), *source = script_source(s, name);

	if (job_read_member(s->job_setup, "input", path, INPUT_MAX_BYTES, &text, err) < 0)
		return err_wrap(err, "input");
	if (check_bytes(name, &text, err) < 0 ||
	    file_kind_check_spoken(name, str_text(&text), text.len, is_known(ext), err) < 0)
		return -1;
	if (is_one_of(ext, "txt", "text"))
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

/* By their names without .txt: "Chapter" comes before "Chapter 2". */
static int as_people_list(const struct dirent **a, const struct dirent **b)
{
	const char *x = (*a)->d_name, *y = (*b)->d_name;
	int order = natural_order_n(x, strlen(x) - strlen(".txt"), y, strlen(y) - strlen(".txt"));

	return order ? order : strcmp(x, y);
}

/* Reads a whole file as one item and one chapter. Its name without .txt is the id and the title. */
static int read_member(struct script *s, const char *dir, const char *dir_name, const char *file,
		       struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(free_text) char *path = path_join(dir, file);
	CLEANUP(free_text) char *name = path_join(dir_name, file);
	struct script_item item = {.source = script_source(s, name), .line = 1};

	if (job_read_member(s->job_setup, "input", path, INPUT_MAX_BYTES, &text, err) < 0 ||
	    check_bytes(name, &text, err) < 0)
		return -1;
	item.id = xstrndup(file, strlen(file) - strlen(".txt"));
	item.chapter = script_chapter(s, item.id);
	script_add(s, &item, str_text(&text), text.len);
	return 0;
}

static int no_input(const char *name, struct err *err)
{
	err_set(err, ERR_CONFIG, "job.input: %s: %s", name, strerror(errno));
	return err_about(err, "job.input");
}

static int read_folder(struct script *s, const char *path, const char *name, struct err *err)
{
	struct dirent **entries;
	int count = scandir(path, &entries, is_text_file, as_people_list), result = 0;

	if (count < 0)
		return no_input(name, err);
	for (int i = 0; i < count; i++) {
		if (result == 0)
			result = read_member(s, path, name, entries[i]->d_name, err);
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
		return no_input(name, err);
	if ((S_ISDIR(st.st_mode) ? read_folder(s, path, name, err)
				 : read_file(s, path, name, mode, err)) < 0)
		return -1;
	if (!s->complaints) {
		script_merge(s, limits);
		script_number(s);
	}
	return script_verdict(s, name, err);
}
