/* table.c - reads objects: JSON lines, tables with a header, and id|text lines */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/jsonx.h"
#include "base/section.h"
#include "script.h"

/* ---- columns ----
 * What the columns of a table, or the keys of a JSON line, are for. */

#define COLUMNS_MAX 64

/* English, then de, es, fr, it, nl, pl, pt; without accents. */
/* clang-format off */
static const char *const text_names[] = {
	"text", "sentence", "line", "content", "dialogue", "dialog", "transcript", "transcription", "utterance", "phrase", "paragraph",
	"satz", "zeile", "inhalt", "absatz",
	"texto", "frase", "oracion", "linea", "contenido", "dialogo", "parrafo",
	"texte", "ligne", "contenu", "replique", "paragraphe",
	"testo", "riga", "contenuto", "battuta", "paragrafo",
	"tekst", "zin", "regel", "inhoud", "dialoog", "alinea",
	"zdanie", "wiersz", "tresc", "akapit",
	"linha", "conteudo", "fala", NULL};
static const char *const speaker_names[] = {
	"speaker", "speaker_name", "character", "actor", "role",
	"sprecher", "sprecherin", "figur", "rolle",
	"hablante", "locutor", "locutora", "personaje", "orador",
	"locuteur", "locutrice", "personnage", "orateur",
	"parlante", "personaggio", "oratore", "ruolo",
	"spreker", "personage", "rol",
	"mowca", "postac", "rola",
	"falante", "personagem", "papel", NULL};
static const char *const id_names[] = {
	"id", "nummer", "kennung", "numero", "identificador", "identifiant", "identificativo", "numer", "identyfikator", NULL};
static const char *const voice_names[] = {"voice", "stimme", "voz", "voix", "voce", "stem", "glos", NULL};
/* clang-format on */
static const char *const seed_names[] = {"seed", NULL};
static const char *const options_names[] = {"options", NULL};

/* The keys that add_object() reads: "=" tells them from the names of columns. The first of the
 * usual names is that of the key, and wins. */
static const struct column_use {
	const char *key;
	const char *const *usual;
	bool configured; /* job.columns has a key of this name that holds a column's name */
} uses[] = {
	{"=text", text_names, true},   {"=id", id_names, true},
	{"=voice", voice_names, true}, {"=speaker", speaker_names, true},
	{"=seed", seed_names, false},  {"=options", options_names, false},
};

/* Names of columns that are written to change the sound, or its pauses. Columns of these names do
 * nothing unless job.columns says so. */
static const char *const sound_names[] = {
	"speaker_id", "speed",  "rate",     "speaking_rate", "pitch",        "volume",
	"emotion",    "style",  "tone",     "mood",          "accent",       "lang",
	"language",   "locale", "ssml",     "prosody",       "instruct",     "instruction",
	"emphasis",   "pause",  "pause_ms", "pause_after",   "pause_before", "break",
	"gap",        "delay",  "phonemes", "ipa",           "exaggeration", "temperature",
	"cfg_weight", NULL};

static size_t trimmed_length(const char *name)
{
	size_t len = strlen(name);

	while (len && strchr(" \t", name[len - 1]))
		len--;
	return len;
}

static bool is_ascii(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text >= 0x80)
			return false;
	return true;
}

/* The plain letter of a small Latin one with an accent; 0: of an accent alone; any other character
 * as it is. */
static uint32_t without_accent(uint32_t c)
{
	static const struct {
		const char *letters;
		char plain;
	} marked[] = {{"áàâãäå", 'a'}, {"çć", 'c'},    {"éèêëę", 'e'}, {"íìîï", 'i'}, {"ł", 'l'},
		      {"ñń", 'n'},     {"óòôõö", 'o'}, {"ś", 's'},     {"úùûü", 'u'}, {"źż", 'z'}};

	if (c >= 0x300 && c <= 0x36f)
		return 0;
	for (size_t i = 0; c >= 0x80 && i < ARRAY_LEN(marked); i++)
		for (const char *p = marked[i].letters; *p;)
			if (utf8_next(&p) == c)
				return (uint32_t)marked[i].plain;
	return c;
}

/* A name in small letters without blanks at its ends. A name that is not
 * valid UTF-8 stays. accents: keep them. The caller frees it. */
static char *folded(const char *name, bool accents)
{
	struct str to = STR_INIT;

	name += strspn(name, " \t");
	CLEANUP(free_text) char *text = xstrndup(name, trimmed_length(name));
	for (const char *p = text; *p && utf8_valid(text, strlen(text));) {
		uint32_t small = heading_fold(utf8_next(&p));
		uint32_t c = accents ? small : without_accent(small);
		if (c)
			str_add_utf8(&to, c);
	}
	return to.len ? str_detach(&to) : TAKE(text);
}

/* Returns whether two names are the same, blanks at their ends and the case of letters aside. */
static bool is_column(const char *name, const char *other)
{
	name += strspn(name, " \t");
	other += strspn(other, " \t");
	size_t len = trimmed_length(name);
	if (len == trimmed_length(other) && !strncasecmp(name, other, len))
		return true;
	if (is_ascii(name) || is_ascii(other))
		return false;
	CLEANUP(free_text) char *a = folded(name, true);
	CLEANUP(free_text) char *b = folded(other, true);
	return !strcmp(a, b);
}

/* Returns whether a name is in the list, whose names are ASCII: accents aside. */
static bool is_among(const char *name, const char *const *list)
{
	CLEANUP(free_text) char *plain = is_ascii(name) ? NULL : folded(name, false);

	for (; *list; list++)
		if (is_column(plain ? plain : name, *list))
			return true;
	return false;
}

/* Returns whether a list of job.columns has the name. */
static bool is_listed(const struct script *s, const char *list, const char *name)
{
	for (size_t i = 0; s->columns && i < section_count(s->columns, list); i++)
		if (is_column(name, section_item(s->columns, list, i)))
			return true;
	return false;
}

/* The column's name that job.columns gives for a use; NULL: none. */
static const char *configured_name(const struct script *s, const struct column_use *use)
{
	const char *name =
		s->columns && use->configured ? section_text(s->columns, use->key + 1) : NULL;

	return name && *name ? name : NULL;
}

/* The first of the names that is used so; NULL: there is none. *rival: another one that could be
 * meant, or NULL. */
static const char *find_use(const struct script *s, const struct column_use *use,
			    const char *const *names, size_t count, const char **rival)
{
	const char *want = configured_name(s, use), *found = NULL;

	*rival = NULL;
	for (size_t i = 0; i < count; i++) {
		if (!want && is_listed(s, "keep", names[i]))
			continue;
		if (is_column(names[i], want ? want : use->key + 1)) {
			*rival = NULL;
			return names[i];
		}
		if (want || !is_among(names[i], use->usual))
			continue;
		if (!found)
			found = names[i];
		else if (!is_column(names[i], found))
			*rival = names[i];
	}
	return found;
}

static void add_shown(struct str *to, const char *name)
{
	str_add(to, to->len ? ", \"" : "\"");
	str_add_printable(to, name, strlen(name), 40);
	str_addc(to, '"');
}

/* What a column that is no use[] is for. */
enum other_use { OTHER_EXTRA, OTHER_OPTION, OTHER_WRONG };

/* Complains about a column that looks as if it should change the sound, and does not. */
static enum other_use use_of_other(struct script *s, const char *source, size_t line,
				   const char *name)
{
	if (is_listed(s, "options", name))
		return OTHER_OPTION;
	if (is_listed(s, "keep", name) || !is_among(name, sound_names))
		return OTHER_EXTRA;
	script_complain_once(
		s, source, line, name,
		"%s changes nothing: to pass it to the engine, name it in job.columns = { "
		"options = [...]; }; to copy it to the manifest alone, in keep = [...]");
	return OTHER_WRONG;
}

/* Sets to[i] to the key of uses[] for each name, or to the name itself. Complains, and returns
 * false, if two names could be meant or a configured one is missing. need_all: the names are a
 * table's header, not the keys of one line. */
static bool name_columns(struct script *s, const char *source, size_t line,
			 const char *const *names, size_t count, bool need_all, const char **to)
{
	bool good = true;

	for (size_t i = 0; i < count; i++)
		to[i] = names[i];
	for (size_t u = 0; u < ARRAY_LEN(uses); u++) {
		const char *rival, *name = find_use(s, &uses[u], names, count, &rival);
		const char *want = configured_name(s, &uses[u]);
		if (rival) {
			script_complain(s, source, line,
					"\"%s\" and \"%s\" could both be the %s: choose with "
					"job.columns = { %s = \"%s\"; }",
					name, rival, uses[u].key + 1, uses[u].key + 1, name);
			good = false;
		}
		if (!name && want && need_all) {
			CLEANUP(str_free) struct str all = STR_INIT;
			for (size_t i = 0; i < count; i++)
				add_shown(&all, names[i]);
			script_complain(s, source, line,
					"job.columns.%s is \"%s\", and no column is called so; "
					"there are %.200s",
					uses[u].key + 1, want, str_text(&all));
			good = false;
		}
		for (size_t i = 0; name && i < count; i++)
			if (is_column(names[i], name))
				to[i] = uses[u].key;
	}
	return good;
}

/* ---- an object: a line of JSON, or a row of a table ---- */

/* The text without blanks at its ends, which tables have behind their separators. The caller frees
 * it. */
static char *without_blanks(const char *text)
{
	text += strspn(text, " \t");
	size_t len = strlen(text);
	while (len && strchr(" \t", text[len - 1]))
		len--;
	return xstrndup(text, len);
}

/* Copies a key's text to *out, if there is one. Returns false after a complaint. */
static bool take_text_of_key(struct script *s, const struct script_item *item, const json_t *object,
			     const char *key, char **out)
{
	json_t *value = json_object_get(object, key);

	if (json_is_string(value))
		*out = without_blanks(json_string_value(value));
	else if (json_is_integer(value) && !strcmp(key, "=id"))
		*out = xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (value && !json_is_null(value)) {
		script_complain(s, item->source, item->line, "\"%s\" must be a text", key + 1);
		return false;
	}
	return true;
}

/* Returns false after a complaint. */
static bool take_seed(struct script *s, struct script_item *item, const json_t *object)
{
	json_t *seed = json_object_get(object, "=seed");

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
	json_t *options = json_object_get(object, "=options");

	if (json_is_object(options))
		item->options = json_copy(options);
	else if (options && !json_is_null(options)) {
		script_complain(s, item->source, item->line,
				"\"options\" must be an object, as in {\"speed\": 160}");
		return false;
	}
	return true;
}

json_t *script_option_value(const char *text)
{
	char *end;
	long long whole = strtoll(text, &end, 10);

	if (*text && !*end)
		return json_integer(whole);
	double number = strtod(text, &end);
	if (*text && !*end && isfinite(number))
		return json_real(number);
	if (!strcmp(text, "true") || !strcmp(text, "false"))
		return json_boolean(text[0] == 't');
	return json_string(text);
}

/* Sets an option of the item by a column of its own; "options" of the line itself wins. */
static void take_option(struct script_item *item, const char *name, json_t *value)
{
	if (json_is_null(value) || json_object_get(item->options, name))
		return;
	if (!item->options)
		item->options = json_object();
	if (json_is_string(value))
		json_object_set_new(item->options, name,
				    script_option_value(json_string_value(value)));
	else
		json_object_set(item->options, name, value);
}

static bool is_own_key(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(uses); i++)
		if (!strcmp(uses[i].key, name))
			return true;
	return false;
}

/* Moves what burst does not know to the item's options or its extra. Returns false after a
 * complaint. */
static bool take_others(struct script *s, struct script_item *item, const json_t *object)
{
	bool good = true;
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)object, name, value) {
		if (is_own_key(name))
			continue;
		enum other_use use = use_of_other(s, item->source, item->line, name);
		good &= use != OTHER_WRONG;
		if (use == OTHER_OPTION)
			take_option(item, name, value);
		else if (!item->extra)
			item->extra = json_pack("{s:O}", name, value);
		else
			json_object_set(item->extra, name, value);
	}
	return good;
}

/* Adds the item of an object whose keys are those of uses[] and others, or complains. */
static void add_object(struct script *s, const char *source, size_t line, const json_t *object)
{
	struct script_item item = {
		.source = source, .line = line, .chapter = -1, .border = BORDER_LINE};
	const json_t *text = json_object_get(object, "=text");

	if (!json_is_string(text)) {
		script_complain(s, source, line,
				text ? "\"text\" must be a text" : "there is no \"text\"");
	} else if (take_text_of_key(s, &item, object, "=id", &item.id) &&
		   take_text_of_key(s, &item, object, "=voice", &item.voice) &&
		   take_text_of_key(s, &item, object, "=speaker", &item.speaker) &&
		   take_seed(s, &item, object) && take_options(s, &item, object) &&
		   take_others(s, &item, object)) {
		script_add_marked(s, &item, json_string_value(text), json_string_length(text));
	}
	free(item.id); /* script_add() has emptied the item if it took the fields */
	free(item.voice);
	free(item.speaker);
	json_decref(item.options);
	json_decref(item.extra);
}

/* ---- table ----
 * Reads tables: CSV and TSV with a header (RFC 4180: quoted fields, newlines in them), and
 * `id|text` lines without one. */

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

static bool is_blank_field(const struct str *field)
{
	return strspn(str_text(field), " \t") == field->len;
}

/* Returns whether a row has no content: spreadsheets export rows like ",,". */
static bool is_empty_row(const struct row *row)
{
	for (size_t i = 0; i < row->count; i++)
		if (!is_blank_field(&row->fields[i]))
			return false;
	return !row->fault;
}

/* The names of a header's columns, and what they are for. */
struct header {
	struct row row;
	const char *names[COLUMNS_MAX], *keys[COLUMNS_MAX];
};

static void list_names(struct header *h)
{
	for (size_t i = 0; i < h->row.count; i++)
		h->names[i] = str_text(&h->row.fields[i]);
}

static bool has_text_column(const struct script *s, const struct header *h)
{
	const char *rival;

	return find_use(s, &uses[0], h->names, h->row.count, &rival) != NULL;
}

/* Reads the first row with each separator in turn until one yields a column for the text, and
 * keeps that separator. Returns false, with r unchanged, if none does. */
static bool read_header(const struct script *s, struct reader *r, struct header *h,
			const char *separators)
{
	struct reader begin = *r;

	for (const char *c = separators; *c; c++) {
		*r = begin;
		r->separator = *c;
		while (read_row(r, &h->row) && is_empty_row(&h->row))
			;
		list_names(h);
		if (!h->row.fault && has_text_column(s, h))
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

	if (!strcmp(name, "=options"))
		value = json_loads(text, 0, NULL);
	if (!strcmp(name, "=seed")) {
		long long seed = strtoll(text, &end, 10);
		value = *end ? NULL : json_integer(seed);
	}
	if (value)
		return value;
	/* script_add() reports an id, text or voice that is not UTF-8 */
	return is_own_key(name) ? json_stringn_nocheck(text, field->len) : json_string(text);
}

/* Adds a row as if it were a line of JSON. Of columns with one name, the first that is not empty
 * counts. A row may lack its last fields. */
static void add_row(struct script *s, const char *source, const struct header *h,
		    const struct row *row)
{
	CLEANUP(json_decref) json_t *object = json_pack("{s:s}", "=text", "");

	for (size_t i = 0; i < MIN(row->count, h->row.count); i++) {
		const char *name = h->keys[i];
		const json_t *other = json_object_get(object, name);
		bool first = !other || (!strcmp(name, "=text") && !json_string_length(other));
		if (row->fields[i].len && name[0] && first)
			json_object_set_new(object, name, cell_value(name, &row->fields[i]));
	}
	add_object(s, source, row->line, object);
}

/* Returns whether a row has content behind the last column. */
static bool is_too_long(const struct header *h, const struct row *row)
{
	for (size_t i = h->row.count; i < row->count; i++)
		if (!is_blank_field(&row->fields[i]))
			return true;
	return false;
}

static void read_rows(struct script *s, const char *source, struct reader *r,
		      const struct header *h, struct row *row)
{
	while (read_row(r, row)) {
		if (is_empty_row(row))
			continue;
		if (row->fault)
			script_complain(s, source, row->line, "%s", row->fault);
		else if (is_too_long(h, row))
			script_complain(s, source, row->line,
					"%zu fields where the header has %zu (a text with a "
					"separator in it "
					"must stand in quotes)",
					row->count, h->row.count);
		else
			add_row(s, source, h, row);
	}
}

/* Names the columns of the header and reads the rows below it. Of other columns, complains already
 * here, at the header's line. */
static void read_below_header(struct script *s, const char *source, struct reader *r,
			      struct header *h, struct row *row)
{
	bool good = name_columns(s, source, h->row.line, h->names, h->row.count, true, h->keys);

	for (size_t i = 0; good && i < h->row.count; i++)
		if (h->names[i][0] && !is_own_key(h->keys[i]))
			good = use_of_other(s, source, h->row.line, h->names[i]) != OTHER_WRONG;
	if (good)
		read_rows(s, source, r, h, row);
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
		script_add_marked(s, &item, str_text(text), text->len);
		free(item.id);
	}
}

/* ---- lines above a table that say how it is written ---- */

static const char *line_end(const struct reader *r)
{
	const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));

	return newline ? newline : r->end;
}

static void skip_directive(struct reader *r)
{
	skip_line(r);
	r->at += r->at < r->end;
	r->line++;
}

/* The separator that a word of Anki's "#separator:" names; 0: unknown. */
static char separator_of(const char *word, size_t len)
{
	static const struct {
		const char *word;
		char separator;
	} known[] = {{"tab", '\t'}, {"comma", ','}, {"semicolon", ';'},
		     {"pipe", '|'}, {"colon", ':'}, {"space", ' '}};

	while (len && (word[len - 1] == '\r' || word[len - 1] == '"'))
		len--;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (len == strlen(known[i].word) && !strncasecmp(known[i].word, word, len))
			return known[i].separator;
	return len == 1 ? *word : 0;
}

#define ANKI_SEPARATOR "#separator:"
#define ANKI_COLUMNS   "#columns:"

bool input_is_exported_table(const char *bytes, size_t len)
{
	return len > strlen(ANKI_SEPARATOR) &&
	       !strncasecmp(bytes, ANKI_SEPARATOR, strlen(ANKI_SEPARATOR));
}

/* Gives the columns of a table without a header the names 1, 2, ... */
static void number_columns(const struct reader *r, struct header *h)
{
	struct reader ahead = *r;
	size_t count;

	while (read_row(&ahead, &h->row) && is_empty_row(&h->row))
		;
	count = h->row.count;
	h->row.line = r->line;
	for (size_t i = 0; i < count; i++) {
		str_reset(&h->row.fields[i]);
		str_addf(&h->row.fields[i], "%zu", i + 1);
	}
	list_names(h);
}

/* Reads Anki's lines "#key:value" above a table, and its header. Anki writes no header but the line
 * "#columns:". Returns false after a complaint. */
static bool read_anki_header(struct script *s, const char *source, struct reader *r,
			     struct header *h)
{
	size_t skip = strlen(ANKI_SEPARATOR);

	r->separator = separator_of(r->at + skip, (size_t)(line_end(r) - r->at) - skip);
	if (!r->separator) {
		script_complain(s, source, r->line,
				"the separator is unknown: tab, comma, semicolon, pipe, colon, "
				"space, or the character itself");
		return false;
	}
	for (skip_directive(r); r->at < r->end && *r->at == '#';) {
		size_t len = (size_t)(line_end(r) - r->at), columns = strlen(ANKI_COLUMNS);
		if (len > columns && !strncasecmp(r->at, ANKI_COLUMNS, columns)) {
			struct reader names = *r;
			names.at += columns;
			names.end = line_end(r);
			read_row(&names, &h->row);
			list_names(h);
		}
		skip_directive(r);
	}
	if (!h->row.count)
		number_columns(r, h);
	if (has_text_column(s, h))
		return true;
	CLEANUP(str_free) struct str all = STR_INIT;
	for (size_t i = 0; i < h->row.count; i++)
		add_shown(&all, h->names[i]);
	script_complain(s, source, 1,
			"no column is called \"text\": name it in job.columns = { text = \"...\"; "
			"}; there are %.200s",
			str_text(&all));
	return false;
}

/* Reads "sep=;" above a table, as spreadsheets write it. Returns the separators to try. */
static const char *read_sep_line(struct reader *r, const char *usual, char own[2])
{
	const char *p = r->at;

	p += p < r->end && *p == '"';
	if (r->end - p < 5 || strncasecmp(p, "sep=", 4) != 0)
		return usual;
	own[0] = p[4];
	own[1] = '\0';
	skip_directive(r);
	return own;
}

static void refuse_table(struct script *s, const char *source, bool tabs)
{
	const char c = tabs ? '\t' : ',';

	script_complain(s, source, 1,
			"no column is called \"text\": put a header line on top, as in "
			"id%ctext%cvoice, or name the column in job.columns = { text = \"...\"; "
			"}%s",
			c, c, tabs ? "" : ", or write id|text lines");
}

void input_read_table(struct script *s, const char *source, const char *bytes, size_t len,
		      bool tabs)
{
	struct reader r = {bytes, bytes + len, 1, '\t'};
	struct header *header = xcalloc(1, sizeof(*header));
	struct row *row = xcalloc(1, sizeof(*row));
	char own[2];

	if (memchr(bytes, '\0', len)) {
		script_complain(s, source, 0, "there are NUL bytes in it: is it text?");
	} else if (input_is_exported_table(bytes, len)) {
		if (read_anki_header(s, source, &r, header))
			read_below_header(s, source, &r, header, row);
	} else {
		const char *separators = read_sep_line(&r, tabs ? "\t" : ",;|\t", own);
		if (read_header(s, &r, header, separators))
			read_below_header(s, source, &r, header, row);
		else if (!tabs && count_pipes(r.at, bytes + len))
			read_piped(s, source, &r, row);
		else if (len)
			refuse_table(s, source, tabs);
	}
	row_free(&header->row);
	row_free(row);
	free(header);
	free(row);
}

/* ---- JSON lines ---- */

/* Adds the object of a line under the keys that add_object() reads. */
static void add_line(struct script *s, const char *source, size_t line, json_t *object)
{
	const char *names[COLUMNS_MAX], *keys[COLUMNS_MAX], *name;
	CLEANUP(json_decref) json_t *renamed = json_object();
	size_t count = 0;
	json_t *value;

	if (json_object_size(object) > COLUMNS_MAX) {
		script_complain(s, source, line, "more than %d keys", COLUMNS_MAX);
		return;
	}
	json_object_foreach (object, name, value)
		names[count++] = name;
	if (!name_columns(s, source, line, names, count, false, keys))
		return;
	for (size_t i = 0; i < count; i++)
		json_object_set(renamed, keys[i], json_object_get(object, names[i]));
	add_object(s, source, line, renamed);
}

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
		add_line(s, source, number, object);
	}
}
