/* test_tts_table.c - what the columns of a table are for. */
#include "tts_helpers.h"

#include "base/section.h"
#include "jobs/tts/script.h"

static const struct split_limits limits = {280, 20};

static int load(const char *name, struct script *s, struct err *err)
{
	CLEANUP(free_text) char *path = in_folder(name);

	return script_load(s, path, name, INPUT_AUTO, &limits, err);
}

static const struct {
	const char *what, *name, *bytes, *text, *id, *options, *keep, *want;
} chosen[] = {
	{"columns by their names", "c.csv", "file;words\nx;One\n", "words", "file", NULL, NULL,
	 "x:One"},
	{"names in another case, with blanks", "c.csv", "File, Words \nx,One\n", "words", "file",
	 NULL, NULL, "x:One"},
	{"one of two columns", "c.csv", "sentence,content\nOne,Two\n", "content", NULL, NULL, NULL,
	 "001:Two+sentence"},
	{"keys of JSON lines", "c.jsonl", "{\"en\":\"One\",\"text\":\"Eins\"}\n", "en", NULL, NULL,
	 NULL, "001:One+text"},
	{"Anki's export without columns", "c.txt", "#separator:Semicolon\n#html:true\nOne;eins\n",
	 "2", NULL, NULL, NULL, "001:eins+1"},
	{"a column for the manifest alone", "c.csv", "text,speed\nOne,2\n", NULL, NULL, NULL,
	 "Speed", "001:One+speed"},
	{"a column that is an option", "c.csv", "text,speed\nOne,2\nTwo,\n", NULL, NULL, "speed",
	 NULL, "001:One{\"speed\":2}|002:Two"},
	{"an option of the line itself wins", "c.jsonl",
	 "{\"text\":\"One\",\"speed\":2,\"options\":{\"speed\":3}}\n", NULL, NULL, "speed", NULL,
	 "001:One{\"speed\":3}"},
	{"a column that does not exist", "c.csv", "id,text\n1,One\n", NULL, "key", NULL, NULL,
	 "c.csv:1: job.columns.id is \"key\", and no column is called so; there are \"id\", "
	 "\"text\""},
};

static const struct option_spec columns_table[] = {
	{"text", OPTION_TEXT, 0, NULL, ""},
	{"id", OPTION_TEXT, 0, NULL, ""},
	{"voice", OPTION_TEXT, 0, NULL, ""},
	{"speaker", OPTION_TEXT, 0, NULL, ""},
	{"options", OPTION_TEXTS, 0, NULL, ""},
	{"keep", OPTION_TEXTS, 0, NULL, ""},
	{0},
};

static void show_extras(struct str *to, const struct script *s)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct script_item *item = &s->items[i];
		const char *key;
		json_t *value;
		CLEANUP(free_text)
		char *options = item->options ? json_dumps(item->options, JSON_COMPACT) : NULL;
		str_addf(to, "%s%s:%s", i ? "|" : "", item->id, item->text);
		json_object_foreach (item->extra, key, value)
			str_addf(to, "+%s", key);
		str_add(to, options ? options : "");
	}
}

static void columns_are_chosen(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(chosen); i++) {
		CLEANUP(section_free) struct section *columns = section_new(columns_table, "c");
		CLEANUP(script_free) struct script s = {.columns = columns};
		CLEANUP(str_free) struct str got = STR_INIT;
		struct err err = {0};
		if (chosen[i].text)
			section_set_text(columns, "text", chosen[i].text, "c");
		if (chosen[i].id)
			section_set_text(columns, "id", chosen[i].id, "c");
		if (chosen[i].options)
			section_add_item(columns, "options", chosen[i].options, "c");
		if (chosen[i].keep)
			section_add_item(columns, "keep", chosen[i].keep, "c");
		put_text(chosen[i].name, chosen[i].bytes);
		if (load(chosen[i].name, &s, &err) < 0)
			str_add(&got, err.msg);
		else
			show_extras(&got, &s);
		if (strcmp(str_text(&got), chosen[i].want) != 0)
			fail_msg("%s: got \"%s\", want \"%s\"", chosen[i].what, str_text(&got),
				 chosen[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_chosen),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
