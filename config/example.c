/* example.c - writes burst.cfg for people: the commented one, and one of given settings */
#include "example.h"

#include <stdlib.h>

#include "base/clock.h"
#include "state.h"

/* ---- given ---- */

#define INDENT 4

struct printer {
	struct str *to;
	const struct config *config;
	int depth;
};

/* Writes the shortest form that reads back as the same number. */
static void add_number(struct str *to, double value)
{
	char text[32];

	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	str_add(to, text);
}

/* Relative to the config's folder if the path lies below it. */
static void add_path_value(const struct printer *p, const char *path)
{
	const char *dir = config_dir(p->config);
	size_t len = strlen(dir);

	if (!strcmp(path, dir))
		config_quote(p->to, ".");
	else if (starts_with(path, dir) && path[len] == '/')
		config_quote(p->to, path + len + 1);
	else
		config_quote(p->to, path);
}

static void add_texts_value(struct str *to, const struct section *s, const char *key)
{
	str_addc(to, '[');
	for (size_t i = 0; i < section_count(s, key); i++) {
		str_add(to, i ? ", " : "");
		config_quote(to, section_item(s, key, i));
	}
	str_addc(to, ']');
}

static void add_section(struct printer *p, const struct section *s);

static void add_groups_value(struct printer *p, const struct section *s, const char *key)
{
	str_add(p->to, "(");
	p->depth++;
	for (size_t i = 0; i < section_count(s, key); i++) {
		str_addf(p->to, "%s\n%*s{\n", i ? "," : "", INDENT * p->depth, "");
		p->depth++;
		add_section(p, section_group_at(s, key, i));
		p->depth--;
		str_addf(p->to, "%*s}", INDENT * p->depth, "");
	}
	p->depth--;
	str_add(p->to, ")");
}

static void add_value(struct printer *p, const struct section *s, const struct option_spec *spec)
{
	struct str *to = p->to;

	switch (spec->type) {
	case OPTION_TEXT: config_quote(to, section_text(s, spec->key)); break;
	case OPTION_PATH: add_path_value(p, section_text(s, spec->key)); break;
	case OPTION_INT: str_addf(to, "%lld", (long long)section_int(s, spec->key)); break;
	case OPTION_DECIMAL: add_number(to, section_decimal(s, spec->key)); break;
	case OPTION_MONEY: add_number(to, (double)section_int(s, spec->key) / 1e6); break;
	case OPTION_BOOL: str_add(to, section_bool(s, spec->key) ? "true" : "false"); break;
	case OPTION_DURATION: config_add_duration(to, section_int(s, spec->key)); break;
	case OPTION_TEXTS: add_texts_value(to, s, spec->key); break;
	case OPTION_GROUP:
		str_add(to, "{\n");
		p->depth++;
		add_section(p, section_group(s, spec->key));
		p->depth--;
		str_addf(to, "%*s}", INDENT * p->depth, "");
		break;
	case OPTION_GROUPS: add_groups_value(p, s, spec->key); break;
	}
}

static void add_key(struct printer *p, const struct section *s, const struct option_spec *spec)
{
	str_addf(p->to, "%*s%s = ", INDENT * p->depth, "", spec->key);
	add_value(p, s, spec);
	str_add(p->to, ";\n");
}

/* Whether the value is set, not only in the user's own file, and may stand in a project's file. A
 * group: whether any key of it is so. */
static bool has_given_value(const struct printer *p, const struct section *s,
			    const struct option_spec *spec)
{
	if (spec->flags & (OPTION_SECRET | OPTION_USER_ONLY) || !section_has(s, spec->key))
		return false;
	if (spec->type != OPTION_GROUP)
		return !config_is_set_by_user(p->config, s, spec->key);
	const struct section *group = section_group(s, spec->key);
	for (const struct option_spec *inner = spec->group; inner->key; inner++)
		if (has_given_value(p, group, inner))
			return true;
	return false;
}

static void add_section(struct printer *p, const struct section *s)
{
	for (const struct option_spec *spec = section_table(s); spec->key; spec++)
		if (has_given_value(p, s, spec))
			add_key(p, s, spec);
}

void config_print_given(struct str *to, const struct config *c)
{
	struct printer p = {.to = to, .config = c};
	const struct section *top = config_top(c);

	for (const struct option_spec *spec = section_table(top); spec->key; spec++)
		if (!strcmp(spec->key, "provider") || has_given_value(&p, top, spec))
			add_key(&p, top, spec);
	str_add(to, "job = {\n");
	p.depth = 1;
	add_section(&p, config_job(c));
	str_add(to, "};\n");
}

/* ---- example ---- */

/* The keys that the file sets. Every other key is a comment. */
static const struct {
	const char *path, *value;
} chosen[] = {
	{"provider", NULL}, /* NULL: the caller of `burst init` names it */
	{"pods", "\"auto\""},
	{"caps", ""},
	{"caps.max_cost", "5.00"},
	{"caps.max_duration", "\"1h\""},
	{"job.type", NULL},
	{"job.name", NULL},
	{"job.engine", "\"espeak\""},
	{"job.input", "\"script.jsonl\""},
	{"job.run", "\"echo pod $BURST_INDEX of $BURST_COUNT >hello-$BURST_INDEX.txt\""},
	{"job.outputs", "[\"*.txt\"]"},
	{"job.output", "\"out\""},
};

const char example_script[] =
	"{\"id\": \"q001\", \"text\": \"Question one. Which planet is closest to the sun?\"}\n"
	"{\"id\": \"q002\", \"text\": \"Question two. How many strings does a violin have?\"}\n"
	"{\"id\": \"q003\", \"text\": \"Question three. What is the largest ocean on Earth?\"}\n";

/* Whether the file sets the key; *value NULL: to what the caller names. */
static bool is_chosen(const char *path, const char **value)
{
	for (size_t i = 0; i < ARRAY_LEN(chosen); i++)
		if (!strcmp(chosen[i].path, path)) {
			*value = chosen[i].value;
			return true;
		}
	return false;
}

/* A working value for a key without a default, for the user to uncomment; NULL: none. */
static const char *example_value(const char *key)
{
	static const struct {
		const char *key, *value;
	} values[] = {{"loudness", "-18"},
		      {"disk_gb", "40"},
		      {"cpu", "4"},
		      {"memory_gb", "16"},
		      {"vram_gb", "8"},
		      {"max_batch", "8"},
		      {"max_price_per_hour", "1.20"},
		      {"on", "[\"failed\", \"capped\", \"unreleased\", \"recovered\"]"},
		      {"per_day", "10.00"},
		      {"per_month", "100.00"},
		      {"bid", "0.50"}};

	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		if (!strcmp(values[i].key, key))
			return values[i].value;
	return NULL;
}

/* Appends one key as `pods = 2;`. value NULL: the default, or an example of its type. */
static void add_setting(struct str *to, const struct option_spec *spec, const char *value)
{
	const struct value_type *type = &value_types[spec->type];

	if (!value && !spec->def)
		value = spec->flags & OPTION_AUTO ? "\"" VALUE_AUTO "\"" : example_value(spec->key);
	if (value || !spec->def)
		str_addf(to, "%s = %s;", spec->key, value ? value : type->empty);
	else
		str_addf(to, "%s = %s%s%s;", spec->key, type->before, spec->def, type->behind);
}

struct page {
	struct str *to;
	const char *type, *name; /* values of job.type and job.name */
	const char *providers;   /* of provider, as burst.cfg has it */
	bool commented;          /* inside a group that is commented out */
};

#define HELP_COLUMN 42

/* Adds a line with its help at the right. A comment is written so that removing "# " at the left
 * makes it a setting, also inside a group. */
static void add_page_line(const struct page *page, int depth, bool commented, const char *text,
			  const char *help)
{
	int columns =
		8 * depth + (commented && !(page->commented && depth) ? 2 : 0) + (int)strlen(text);

	if (page->commented)
		str_add(page->to, "# ");
	for (int i = 0; i < depth; i++)
		str_addc(page->to, '\t');
	if (commented && !page->commented)
		str_add(page->to, "# ");
	str_add(page->to, text);
	if (help)
		str_addf(page->to, "%*s# %s", MAX(HELP_COLUMN - columns, 1), "", help);
	str_addc(page->to, '\n');
}

static void add_example_key(struct page *page, const struct option_spec *spec, const char *prefix,
			    int depth);

static void add_example_keys(struct page *page, const struct option_spec *table, const char *prefix,
			     int depth)
{
	for (; table->key; table++)
		if (!(table->flags & (OPTION_USER_ONLY | OPTION_SECRET)))
			add_example_key(page, table, prefix, depth);
}

static void add_example_group(struct page *page, const struct option_spec *spec, const char *path,
			      int depth, bool commented)
{
	CLEANUP(free_text) char *inner = xasprintf("%s.", path);
	CLEANUP(free_text) char *open = xasprintf("%s = {", spec->key);
	bool before = page->commented;

	page->commented = commented;
	add_page_line(page, depth, commented, open, spec->help);
	add_example_keys(page, spec->group, inner, depth + 1);
	add_page_line(page, depth, commented, "};", NULL);
	page->commented = before;
}

static void add_example_key(struct page *page, const struct option_spec *spec, const char *prefix,
			    int depth)
{
	CLEANUP(free_text) char *path = xasprintf("%s%s", prefix, spec->key);
	CLEANUP(str_free) struct str own = STR_INIT;
	CLEANUP(str_free) struct str line = STR_INIT;
	const char *value = NULL;
	bool commented = page->commented || !is_chosen(path, &value);

	if (spec->type == OPTION_GROUP) {
		add_example_group(page, spec, path, depth, commented);
		return;
	}
	if (!commented && !value && !strcmp(path, "provider"))
		value = page->providers;
	if (!commented && !value) {
		config_quote(&own, strcmp(spec->key, "type") ? page->name : page->type);
		value = str_text(&own);
	}
	add_setting(&line, spec, value);
	add_page_line(page, depth, commented, str_text(&line), spec->help);
}

static void add_providers(struct page *page, const struct provider_ops *const *providers)
{
	page->commented = true;
	add_page_line(page, 0, true, "providers = {", NULL);
	for (; *providers; providers++) {
		CLEANUP(free_text) char *prefix = xasprintf("providers.%s.", (*providers)->name);
		CLEANUP(free_text) char *open = xasprintf("%s = {", (*providers)->name);
		add_page_line(page, 1, true, open, (*providers)->summary);
		add_example_keys(page, (*providers)->options, prefix, 2);
		add_page_line(page, 1, true, "};", NULL);
	}
	add_page_line(page, 0, true, "};", NULL);
	page->commented = false;
}

/* ---- the short one ---- */

static const char short_head[] =
	"# What to render, and on what. `burst help burst.cfg` lists every key; accounts belong in "
	"~/.config/burst/burst.cfg.\n"
	"provider = %s;  # or [\"ssh\", \"runpod\"], tried in this order; \"local\" needs no "
	"account\n"
	"# gpu = [\"RTX 4090\", \"L40S\"];  # in order of preference; burst chooses when absent\n"
	"pods = \"auto\";  # or the largest number of pods\n"
	"caps = { max_cost = 5.00; max_duration = \"1h\"; };  # a run stops before it costs or "
	"takes "
	"more\n";

static const char short_speech_job[] =
	"job = {\n"
	"\tname = %s;\n"
	"\ttype = \"tts\";\n"
	"\tengine = \"espeak\";  # `burst engines` lists the others\n"
	"\tinput = \"script.jsonl\";  # or .txt, .md, .csv, .tsv\n"
	"\toutput = \"out\";\n"
	"\tjoin = { subtitles = true; };  # one track of all segments\n"
	"};\n";

static const char short_command_job[] =
	"code = { path = \".\"; };  # what the pods get: this folder, without what .gitignore "
	"names\n"
	"job = {\n"
	"\tname = %s;\n"
	"\ttype = \"command\";\n"
	"\trun = \"echo pod $BURST_INDEX of $BURST_COUNT >hello-$BURST_INDEX.txt\";  # your own "
	"command\n"
	"\toutputs = [\"*.txt\"];  # the files to fetch; \"**\": whatever the command makes\n"
	"\toutput = \"out\";\n"
	"};\n";

bool example_short(struct str *to, const char *name, const char *providers,
		   const struct job_ops *job)
{
	CLEANUP(str_free) struct str quoted = STR_INIT;
	bool speaks = !strcmp(job->type, "tts");

	if (!speaks && strcmp(job->type, "command") != 0)
		return false;
	config_quote(&quoted, name);
	str_addf(to, short_head, providers);
	str_addf(to, speaks ? short_speech_job : short_command_job, str_text(&quoted));
	return true;
}

/* ---- the full one ---- */

void example_config(struct str *to, const char *name, const char *providers,
		    const struct job_ops *job, const struct provider_ops *const *known)
{
	struct page page = {.to = to, .type = job->type, .name = name, .providers = providers};

	str_addf(to,
		 "# burst.cfg: what to render, and on what. `burst run` reads it; `burst plan` "
		 "shows what it would rent.\n"
		 "# Accounts and your own defaults belong in ~/.config/burst/burst.cfg, never "
		 "here; so does what projects may do\n"
		 "# beyond their own folder and volume (allow_paths, volumes, max_volume_gb).\n\n"
		 "# %s\njob = {\n",
		 job->summary ? job->summary : job->type);
	add_example_keys(&page, job->options, "job.", 1);
	str_add(to, "};\n\n");
	add_example_keys(&page, config_keys, "", 0);
	str_addc(to, '\n');
	add_providers(&page, known);
}
