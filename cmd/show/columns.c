/* columns.c - what burst says of a thing, from one description: as a table, JSON or CSV. */
#include "columns.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/str.h"

/* ---- values as JSON ---- */

/* output_json_line() prints no more decimals than these. */
json_t *report_seconds(int64_t ms)
{
	return json_real((double)ms / 1000);
}

json_t *report_dollars(int64_t microusd)
{
	return json_real((double)microusd / 1e6);
}

/* JSON requires UTF-8; paths and vendors' words may have any bytes. */
json_t *report_text(const char *text)
{
	CLEANUP(str_free) struct str safe = STR_INIT;

	if (utf8_valid(text, strlen(text)))
		return json_string(text);
	str_add_printable(&safe, text, strlen(text), 0);
	return json_string(str_text(&safe));
}

json_t *report_time(int64_t wall_ms)
{
	char text[32];

	return wall_ms > 0 ? json_string(clock_rfc3339(text, sizeof(text), wall_ms)) : json_null();
}

/* ---- columns ---- */

static json_t *value_json(const struct shown_column *c, const void *of)
{
	const char *at = (const char *)of + c->at;
	int64_t number = c->unit >= UNIT_TIME ? *(const int64_t *)at : 0;
	const char *word = c->unit == UNIT_WORD ? *(const char *const *)at : NULL;
	double real = c->unit == UNIT_REAL ? *(const double *)at : 0;

	if (c->json)
		return c->json(of);
	switch (c->unit) {
	case UNIT_FIGURE:
	case UNIT_TEXT: return report_text(at);
	case UNIT_TEXT_OR_NULL: return *at ? report_text(at) : json_null();
	case UNIT_WORD: return word ? report_text(word) : json_null();
	case UNIT_FLAG: return json_boolean(*(const bool *)at);
	case UNIT_INT: return json_integer(*(const int *)at);
	case UNIT_REAL: return isnan(real) ? json_null() : json_real(real);
	case UNIT_TIME: return report_time(number);
	case UNIT_COUNT: return json_integer(number);
	case UNIT_MS: return number < 0 ? json_null() : report_seconds(number);
	case UNIT_USD: return number < 0 ? json_null() : report_dollars(number);
	}
	return json_null();
}

json_t *columns_json(json_t *to, const struct columns *c, unsigned sets, const void *of)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->list[i].sets & sets)
			json_object_set_new(to, c->list[i].key, value_json(&c->list[i], of));
	return to;
}

void columns_titles(struct table *t, const struct columns *c, unsigned sets)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->list[i].sets & sets)
			table_column(t, c->list[i].title,
				     c->list[i].unit >= UNIT_FIGURE && c->list[i].unit != UNIT_TIME
					     ? TABLE_RIGHT
					     : TABLE_LEFT,
				     c->list[i].spare);
}

static void add_number_cell(struct table *t, const struct shown_column *c, int64_t number)
{
	char text[32];

	if (c->unit == UNIT_TIME)
		table_cell(t, "%.10s %.5s", clock_rfc3339(text, sizeof(text), number), text + 11);
	else if (number < 0)
		table_cell(t, "-");
	else if (c->unit == UNIT_COUNT)
		table_cell(t, "%lld", (long long)number);
	else
		table_cell(t, "%s",
			   c->unit == UNIT_USD ? money_show(text, sizeof(text), number)
					       : duration_show(text, sizeof(text), number));
}

static void add_cell(struct table *t, const struct shown_column *c, const void *of)
{
	const char *at = (const char *)of + c->at;
	char text[300];

	if (c->text) {
		c->text(text, sizeof(text), of);
		table_cell(t, "%s", text);
		return;
	}
	switch (c->unit) {
	case UNIT_TEXT:
	case UNIT_TEXT_OR_NULL:
	case UNIT_FIGURE: table_cell(t, "%s", at); return;
	case UNIT_WORD:
		table_cell(t, "%s", *(const char *const *)at ? *(const char *const *)at : "-");
		return;
	case UNIT_FLAG: table_cell(t, "%s", *(const bool *)at ? "yes" : "no"); return;
	case UNIT_INT: table_cell(t, "%d", *(const int *)at); return;
	case UNIT_REAL:
		table_cell(t, isnan(*(const double *)at) ? "-" : "%.*f", c->digits,
			   *(const double *)at);
		return;
	case UNIT_TIME:
	case UNIT_COUNT:
	case UNIT_MS:
	case UNIT_USD: add_number_cell(t, c, *(const int64_t *)at); return;
	}
}

void columns_cells(struct table *t, const struct columns *c, unsigned sets, const void *of)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->list[i].sets & sets)
			add_cell(t, &c->list[i], of);
}

/* Printable text, quoted if it has a comma or a quote. */
static void add_csv_text(struct str *to, const char *text)
{
	CLEANUP(str_free) struct str safe = STR_INIT;

	str_add_printable(&safe, text, strlen(text), 0);
	if (!strpbrk(str_text(&safe), ",\"")) {
		str_add(to, str_text(&safe));
		return;
	}
	str_addc(to, '"');
	for (const char *p = str_text(&safe); *p; p++) {
		if (*p == '"')
			str_addc(to, '"');
		str_addc(to, *p);
	}
	str_addc(to, '"');
}

static void add_csv_value(struct str *to, const struct shown_column *c, const void *of)
{
	CLEANUP(json_decref) json_t *value = value_json(c, of);

	if (json_is_string(value))
		add_csv_text(to, json_string_value(value));
	else if (json_is_integer(value))
		str_addf(to, "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		str_addf(to, "%.*f", c->unit == UNIT_MS ? 3 : 6, json_real_value(value));
}

void columns_csv(struct str *to, const struct columns *c, unsigned sets, const void *of)
{
	const char *comma = "";

	for (size_t i = 0; i < c->count; i++) {
		if (!(c->list[i].sets & sets))
			continue;
		str_add(to, comma);
		comma = ",";
		if (of)
			add_csv_value(to, &c->list[i], of);
		else
			str_add(to, c->list[i].key);
	}
	str_addc(to, '\n');
}

/* ---- rows ---- */

struct rows rows_begin(bool json, const struct columns *c, unsigned table_sets, unsigned json_sets)
{
	struct rows r = {.columns = c, .sets = json ? json_sets : table_sets};

	if (json) {
		r.list = json_array();
	} else {
		r.table = table_new();
		columns_titles(r.table, c, table_sets);
	}
	return r;
}

void rows_add(struct rows *r, const void *of)
{
	if (r->list)
		json_array_append_new(r->list,
				      columns_json(json_object(), r->columns, r->sets, of));
	else
		columns_cells(r->table, r->columns, r->sets, of);
}

void rows_end(struct rows *r)
{
	if (r->list)
		output_json(r->list);
	else
		table_print(r->table, stdout, terminal_width(stdout));
	table_free(r->table);
}
