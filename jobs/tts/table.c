/* table.c - reads tables: CSV and TSV with a header (RFC 4180: quoted fields, newlines in them),
 * and `id|text` lines without one. */
#include "script.h"

#include <stdlib.h>
#include <strings.h>

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

/* Reads a quoted field; r->at is behind the opening quote. */
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

static const char *read_plain(struct reader *r, struct str *field)
{
	while (r->at < r->end && *r->at != r->separator && *r->at != '\n')
		str_addc(field, *r->at++);
	return NULL;
}

static void end_field(struct str *field)
{
	if (field->len && field->s[field->len - 1] == '\r')
		field->s[--field->len] = '\0';
}

/* Programs that write pipes and tabs do not quote, so a quote with text behind it is ordinary text.
 */
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
			end_field(field);
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

enum column { COLUMN_EXTRA, COLUMN_ID, COLUMN_TEXT, COLUMN_VOICE, COLUMN_SEED, COLUMN_OPTIONS };

static enum column column_of(const char *name)
{
	static const char *const names[] = {NULL, "id", "text", "voice", "seed", "options"};
	size_t skip = strspn(name, " \t"), len = strcspn(name + skip, " \t");

	if (name[skip + len + strspn(name + skip + len, " \t")])
		return COLUMN_EXTRA;
	for (size_t i = 1; i < ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len && !strncasecmp(names[i], name + skip, len))
			return (enum column)i;
	return COLUMN_EXTRA;
}

static bool find_text(const struct row *header)
{
	for (size_t i = 0; i < header->count; i++)
		if (column_of(str_text(&header->fields[i])) == COLUMN_TEXT)
			return true;
	return false;
}

/* Reads the first row with each separator in turn until one yields a column "text". */
static bool read_header(struct reader *r, struct row *header, const char *separators)
{
	struct reader begin = *r;

	for (const char *c = separators; *c; c++) {
		*r = begin;
		r->separator = *c;
		while (read_row(r, header) && is_empty_row(header))
			;
		if (!header->fault && find_text(header))
			return true;
	}
	*r = begin;
	return false;
}

static void set_extra(struct script_item *item, const char *name, const char *value)
{
	if (!value[0] || !name[0])
		return;
	if (!item->extra)
		item->extra = json_object();
	json_object_set_new(item->extra, name,
			    json_string(value)); /* rejects text that is not UTF-8 */
}

/* Returns false after a complaint. */
static bool set_seed(struct script *s, struct script_item *item, const char *value)
{
	char *end;
	long long seed = strtoll(value, &end, 10);

	if (*end || seed < 0 || seed > INT32_MAX) {
		script_complain(s, item->source, item->line,
				"seed must be a whole number from 0 to 2147483647");
		return false;
	}
	item->has_seed = true;
	item->seed = seed;
	return true;
}

static bool set_options(struct script *s, struct script_item *item, const char *value)
{
	item->options = json_loads(value, 0, NULL);
	if (json_is_object(item->options))
		return true;
	script_complain(s, item->source, item->line,
			"options must be a JSON object, as in {\"speed\": 160}");
	return false;
}

/* Returns false after a complaint. */
static bool set_field(struct script *s, struct script_item *item, enum column column,
		      const char *name, const char *value)
{
	if (!value[0])
		return true;
	switch (column) {
	case COLUMN_ID:
		free(item->id);
		item->id = xstrdup(value);
		return true;
	case COLUMN_VOICE:
		free(item->voice);
		item->voice = xstrdup(value);
		return true;
	case COLUMN_SEED: return set_seed(s, item, value);
	case COLUMN_OPTIONS: return item->options || set_options(s, item, value);
	case COLUMN_EXTRA: set_extra(item, name, value); return true;
	case COLUMN_TEXT: return true;
	}
	return true;
}

static void add_row(struct script *s, const char *source, const struct row *header,
		    const struct row *row)
{
	struct script_item item = {.source = source, .line = row->line, .chapter = -1};
	const struct str *text = NULL;
	bool good = true;

	for (size_t i = 0; i < row->count && good; i++) {
		const char *name = str_text(&header->fields[i]);
		enum column column = column_of(name);
		if (column == COLUMN_TEXT && !text)
			text = &row->fields[i];
		good = set_field(s, &item, column, name, str_text(&row->fields[i]));
	}
	if (good && text)
		script_add(s, &item, str_text(text), text->len);
	free(item.id); /* free what script_add() did not take */
	free(item.voice);
	json_decref(item.options);
	json_decref(item.extra);
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
		struct script_item item = {.source = source, .line = row->line, .chapter = -1};
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
