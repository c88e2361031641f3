/* table.c - reads objects: JSON lines, tables with a header, and id|text lines */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/jsonx.h"
#include "script.h"

/* ---- an object: a line of JSON, or a row of a table ---- */

/* Copies a key's text to *out, if there is one. Returns false after a complaint. */
static bool take_text_of_key(struct script *s, const struct script_item *item, const json_t *object,
			     const char *key, char **out)
{
	json_t *value = json_object_get(object, key);

	if (json_is_string(value))
		*out = xstrdup(json_string_value(value));
	else if (json_is_integer(value) && !strcmp(key, "id"))
		*out = xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (value && !json_is_null(value)) {
		script_complain(s, item->source, item->line, "\"%s\" must be a text", key);
		return false;
	}
	return true;
}

/* Returns false after a complaint. */
static bool take_seed(struct script *s, struct script_item *item, const json_t *object)
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

/* Sets item->options. Returns false after a complaint. */
static bool take_options(struct script *s, struct script_item *item, const json_t *object)
{
	json_t *options = json_object_get(object, "options");

	if (json_is_object(options))
		item->options = json_incref(options);
	else if (options && !json_is_null(options)) {
		script_complain(s, item->source, item->line,
				"\"options\" must be an object, as in {\"speed\": 160}");
		return false;
	}
	return true;
}

/* Moves what burst does not know to item->extra; changes the object. */
static void take_extra(struct script_item *item, json_t *object)
{
	static const char *const ours[] = {"id", "text", "voice", "seed", "options"};

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		json_object_del(object, ours[i]);
	if (json_object_size(object))
		item->extra = json_incref(object);
}

/* Adds the item of a JSON line or a table's row, or complains. Changes the object. */
static void add_object(struct script *s, const char *source, size_t line, json_t *object)
{
	struct script_item item = {
		.source = source, .line = line, .chapter = -1, .border = BORDER_LINE};
	json_t *text = json_incref(json_object_get(object, "text"));

	if (!json_is_string(text)) {
		script_complain(s, source, line,
				text ? "\"text\" must be a text" : "there is no \"text\"");
	} else if (take_text_of_key(s, &item, object, "id", &item.id) &&
		   take_text_of_key(s, &item, object, "voice", &item.voice) &&
		   take_seed(s, &item, object) && take_options(s, &item, object)) {
		take_extra(&item, object);
		script_add(s, &item, json_string_value(text), json_string_length(text));
	}
	free(item.id); /* script_add() has emptied the item if it took the fields */
	free(item.voice);
	json_decref(item.options);
	json_decref(item.extra);
	json_decref(text);
}

/* ---- table ----
 * Reads tables: CSV and TSV with a header (RFC 4180: quoted fields, newlines in them), and
 * `id|text` lines without one. */

#define COLUMNS_MAX 64

struct row {
	struct str fields[COLUMNS_MAX];
	size_t count;
	size_t line; /* of the first line */
	const char *fault;
};

struct reader {
	const char *at, *end;
	size_t line;
	char separator;
};

static void row_reset(struct row *row)
{
	for (size_t i = 0; i < row->count; i++)
		str_reset(&row->fields[i]);
	row->count = 0;
	row->fault = NULL;
}

static void row_free(struct row *row)
{
	for (size_t i = 0; i < COLUMNS_MAX; i++)
		str_free(&row->fields[i]);
}

/* Reads a quoted field; r->at is behind the opening quote. Returns NULL, or what is wrong. */
static const char *read_quoted(struct reader *r, struct str *field)
{
	while (r->at < r->end) {
		char c = *r->at++;
		if (c == '"' && r->at < r->end && *r->at == '"')
			r->at++;
		else if (c == '"')
			return NULL;
		r->line += c == '\n';
		str_addc(field, c);
	}
	return "a quote is opened and never closed";
}

/* Reads a field up to the separator or newline. Returns NULL: nothing can be wrong. */
static const char *read_plain(struct reader *r, struct str *field)
{
	while (r->at < r->end && *r->at != r->separator && *r->at != '\n')
		str_addc(field, *r->at++);
	return NULL;
}

static void drop_carriage_return(struct str *field)
{
	if (field->len && field->s[field->len - 1] == '\r')
		field->s[--field->len] = '\0';
}

/* Reads a field. Returns NULL, or what is wrong. Programs that write pipes and tabs do not quote,
 * so between those a quote with text behind it is ordinary text. */
static const char *read_field(struct reader *r, struct str *field)
{
	struct reader begin = *r;

	if (r->at >= r->end || *r->at != '"' || r->separator == '|')
		return read_plain(r, field);
	r->at++;
	const char *fault = read_quoted(r, field);
	const char *p = r->at;
	if (!fault && p < r->end && *p == '\r')
		p++;
	if (!fault && (p >= r->end || *p == r->separator || *p == '\n')) {
		r->at = p;
		return NULL;
	}
	if (r->separator != '\t')
		return fault ? fault
			     : "there is text behind a closing quote (write \"\" for a quote "
			       "within)";
	*r = begin;
	str_reset(field);
	return read_plain(r, field);
}

static void skip_line(struct reader *r)
{
	const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));

	r->at = newline ? newline : r->end;
}

/* Reads the next row; row->fault says what is wrong with it. Returns false at the end. */
static bool read_row(struct reader *r, struct row *row)
{
	row_reset(row);
	if (r->at >= r->end)
		return false;
	row->line = r->line;
	for (;;) {
		if (row->count == COLUMNS_MAX) {
			row->fault = "more than 64 fields";
			skip_line(r);
		} else {
			struct str *field = &row->fields[row->count++];
			row->fault = read_field(r, field);
			drop_carriage_return(field);
		}
		if (row->fault)
			skip_line(r);
		if (r->at >= r->end || *r->at == '\n')
			break;
		r->at++;
	}
	if (r->at < r->end) {
		r->at++;
		r->line++;
	}
	return true;
}

static bool is_empty_row(const struct row *row)
{
	return row->count == 1 && !row->fault &&
	       strspn(str_text(&row->fields[0]), " \t") == row->fields[0].len;
}

/* Returns one of the names that burst knows, or the name itself. */
static const char *column_name(const struct str *field)
{
	static const char *const names[] = {"id", "text", "voice", "seed", "options"};
	const char *name = str_text(field);
	size_t skip = strspn(name, " \t"), len = strcspn(name + skip, " \t");

	if (name[skip + len + strspn(name + skip + len, " \t")])
		return name;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len && !strncasecmp(names[i], name + skip, len))
			return names[i];
	return name;
}

static bool has_text_column(const struct row *header)
{
	for (size_t i = 0; i < header->count; i++)
		if (!strcmp(column_name(&header->fields[i]), "text"))
			return true;
	return false;
}

/* Reads the first row with each separator in turn until one yields a column "text", and keeps that
 * separator. Returns false, with r unchanged, if none does. */
static bool read_header(struct reader *r, struct row *header, const char *separators)
{
	struct reader begin = *r;

	for (const char *c = separators; *c; c++) {
		*r = begin;
		r->separator = *c;
		while (read_row(r, header) && is_empty_row(header))
			;
		if (!header->fault && has_text_column(header))
			return true;
	}
	*r = begin;
	return false;
}

/* The JSON value of a table's cell: a seed is a number, options are an object, if they can be read
 * so; anything else is a text. Returns NULL for a text that no JSON can hold. */
static json_t *cell_value(const char *name, const struct str *field)
{
	const char *text = str_text(field);
	json_t *value = NULL;
	char *end;

	if (!strcmp(name, "options"))
		value = json_loads(text, 0, NULL);
	if (!strcmp(name, "seed")) {
		long long seed = strtoll(text, &end, 10);
		value = *end ? NULL : json_integer(seed);
	}
	if (value)
		return value;
	/* script_add() reports an id, text or voice that is not UTF-8 */
	return !strcmp(name, "id") || !strcmp(name, "text") || !strcmp(name, "voice")
		       ? json_stringn_nocheck(text, field->len)
		       : json_string(text);
}

/* Adds a row as if it were a line of JSON. Of columns with one name, the first that is not empty
 * counts. */
static void add_row(struct script *s, const char *source, const struct row *header,
		    const struct row *row)
{
	CLEANUP(json_decref) json_t *object = json_object();

	for (size_t i = 0; i < row->count; i++) {
		const char *name = column_name(&header->fields[i]);
		bool used = row->fields[i].len || !strcmp(name, "text");
		if (used && name[0] && !json_object_get(object, name))
			json_object_set_new(object, name, cell_value(name, &row->fields[i]));
	}
	add_object(s, source, row->line, object);
}

static void read_rows(struct script *s, const char *source, struct reader *r,
		      const struct row *header, struct row *row)
{
	while (read_row(r, row)) {
		if (is_empty_row(row))
			continue;
		if (row->fault)
			script_complain(s, source, row->line, "%s", row->fault);
		else if (row->count != header->count)
			script_complain(s, source, row->line,
					"%zu fields where the header has %zu (a text with a "
					"separator in it "
					"must stand in quotes)",
					row->count, header->count);
		else
			add_row(s, source, header, row);
	}
}

/* Returns the number of pipes a line if all lines have the same, 1 or 2, behind an id; else 0. */
static int count_pipes(const char *bytes, const char *end)
{
	const char *line;
	size_t len;
	int all = 0;

	for (const char *at = bytes; next_line(&at, end, &line, &len);) {
		int pipes = 0;
		if (!len)
			continue;
		for (size_t i = 0; i < len; i++)
			pipes += line[i] == '|';
		if (pipes < 1 || pipes > 2 || (all && pipes != all) || line[0] == '|' ||
		    memchr(line, ' ', (size_t)((const char *)memchr(line, '|', len) - line)))
			return 0;
		all = pipes;
	}
	return all;
}

/* Reads id|text, or id|as written|as spoken. */
static void read_piped(struct script *s, const char *source, struct reader *r, struct row *row)
{
	r->separator = '|';
	while (read_row(r, row)) {
		if (is_empty_row(row))
			continue;
		struct script_item item = {
			.source = source, .line = row->line, .chapter = -1, .border = BORDER_LINE};
		const struct str *text =
			row->count > 2 && row->fields[2].len ? &row->fields[2] : &row->fields[1];
		item.id = xstrdup(str_text(&row->fields[0]));
		script_add(s, &item, str_text(text), text->len);
		free(item.id);
	}
}

void input_read_table(struct script *s, const char *source, const char *bytes, size_t len,
		      bool tabs)
{
	struct reader r = {bytes, bytes + len, 1, '\t'};
	struct row *header = xcalloc(1, sizeof(*header)), *row = xcalloc(1, sizeof(*row));

	if (memchr(bytes, '\0', len))
		script_complain(s, source, 0, "there are NUL bytes in it: is it text?");
	else if (read_header(&r, header, tabs ? "\t" : ",;|\t"))
		read_rows(s, source, &r, header, row);
	else if (!tabs && count_pipes(bytes, bytes + len))
		read_piped(s, source, &r, row);
	else if (len)
		script_complain(s, source, 1,
				"no column is called \"text\": put a header line on top, as in "
				"id%ctext%cvoice%s",
				tabs ? '\t' : ',', tabs ? '\t' : ',',
				tabs ? "" : ", or write id|text lines");
	row_free(header);
	row_free(row);
	free(header);
	free(row);
}

/* ---- JSON lines ---- */

void input_read_jsonl(struct script *s, const char *source, const char *bytes, size_t len)
{
	const char *line, *end = bytes + len;
	size_t n, number = 0;

	for (const char *at = bytes; next_line(&at, end, &line, &n);) {
		struct err why = {0};
		number++;
		if (line_is_blank(line, n))
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
