/* keys_page.c - writes the reference of burst.cfg from the key tables: for `burst help burst.cfg`,
 * config/README.md and burst.cfg(5). */
#include "keys_page.h"

#include "cmd/cmd.h"
#include "config/reference.h"
#include "roff.h"
#include "text.h"

#define WIDTH 80

/* Type, default, range and who may set it, as a part of a sentence. The caller frees it. */
static char *facts(const struct reference_row *row)
{
	struct str text = STR_INIT;

	str_add(&text, row->kind);
	if (row->value)
		str_addf(&text, ", default %s", row->value);
	if (row->range)
		str_addf(&text, ", %s", row->range);
	if (row->flags & OPTION_REQUIRED && !(row->flags & OPTION_SECRET))
		str_add(&text, ", required");
	if (row->flags & OPTION_USER_ONLY)
		str_add(&text, ", only in your own file");
	return str_detach(&text);
}

/* ---- text ---- */

static void text_section(void *ctx, const char *title, const char *text)
{
	fprintf(ctx, "\n%s\n", title);
	if (*text)
		text_wrap(ctx, text, 0, 0, WIDTH);
}

static void text_row(void *ctx, const struct reference_row *row)
{
	CLEANUP(free_text) char *about = facts(row);
	CLEANUP(free_text) char *text = xasprintf("%s (%s)", row->help, about);

	fprintf(ctx, "\n  %s\n      ", row->path);
	text_wrap(ctx, text, 6, 6, WIDTH);
}

void keys_text(FILE *to)
{
	const struct reference_reader reader = {to, text_section, text_row};

	fputs("burst.cfg: every key, its type and its default\n", to);
	reference_read(&reader, job_registry, provider_registry);
}

/* ---- Markdown ---- */

/* Escapes a bar, which would end the cell. */
static void cell(FILE *to, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			fputc('\\', to);
		fputc(*text, to);
	}
}

static void markdown_section(void *ctx, const char *title, const char *text)
{
	fprintf(ctx, "\n### %s\n\n", title);
	if (*text)
		fprintf(ctx, "%s\n\n", text);
	fputs("| key | type | default | what |\n| --- | --- | --- | --- |\n", ctx);
}

static void markdown_row(void *ctx, const struct reference_row *row)
{
	fprintf(ctx, "| `%s` | %s | ", row->path, row->kind);
	if (row->value) {
		fputc('`', ctx);
		cell(ctx, row->value);
		fputs("` ", ctx);
	}
	fputs("| ", ctx);
	cell(ctx, row->help);
	if (row->range)
		fprintf(ctx, "; allowed: %s", row->range);
	if (row->flags & OPTION_REQUIRED && !(row->flags & OPTION_SECRET))
		fputs("; **required**", ctx);
	if (row->flags & OPTION_USER_ONLY)
		fputs("; **your own file only**", ctx);
	fputs(" |\n", ctx);
}

void keys_markdown(FILE *to)
{
	const struct reference_reader reader = {to, markdown_section, markdown_row};

	reference_read(&reader, job_registry, provider_registry);
}

/* ---- the man page ---- */

static void man_section(void *ctx, const char *title, const char *text)
{
	roff_heading(ctx, ".SS", title);
	roff_paragraph(ctx, text);
}

static void man_row(void *ctx, const struct reference_row *row)
{
	CLEANUP(free_text) char *about = facts(row);
	CLEANUP(free_text) char *text = xasprintf("%s (%s)", row->help, about);

	roff_item(ctx, row->path, text);
}

static const char description[] =
	"burst.cfg says what to render, and on what. burst reads the one in the current folder, or "
	"the one that the command line names. Your accounts and defaults stand in a second file, "
	"~/.config/burst/burst.cfg. A flag goes before the project's file, and the project's file "
	"before yours.\n\n"
	"A line is key = value; and # begins a comment. Texts stand in quotes, lists in [ ], "
	"groups "
	"in { }. Durations are texts: \"90s\", \"20m\", \"2h\". Relative paths are relative to the "
	"file in which they stand. An unknown key, a wrong type or a value out of range is an "
	"error "
	"that names the line. burst checks everything before it rents.\n\n"
	"A project's file comes with a repository and is not trusted. It cannot set keys marked "
	"\"only in your own file\", and its paths stay inside the project unless your own file has "
	"them in allow_paths.";

static const char local_example[] = "provider = [\"local\"];\n"
				    "caps     = { max_cost = 1.00; max_duration = \"30m\"; };\n"
				    "job = {\n"
				    "    name   = \"quiz\";\n"
				    "    type   = \"tts\";\n"
				    "    engine = \"espeak\";\n"
				    "    input  = \"quiz.jsonl\";\n"
				    "    output = \"out\";\n"
				    "};\n";

static const char cloud_example[] =
	"provider = [\"runpod\", \"modal\"];\n"
	"gpu      = [\"RTX 4090\", \"L40S\"];\n"
	"volume   = { name = \"voices\"; size_gb = 20; create = true; };\n"
	"caps     = { max_cost = 1.00; max_duration = \"1h\"; };\n"
	"job = {\n"
	"    name   = \"book\";\n"
	"    type   = \"tts\";\n"
	"    engine = \"qwen3\";\n"
	"    voice  = \"ryan\";\n"
	"    input  = \"book.md\";\n"
	"    join   = { gap = 0.4; subtitles = true; };\n"
	"};\n";

static const char command_example[] = "provider = [\"runpod\"];\n"
				      "gpu      = [\"RTX 4090\"];\n"
				      "code     = { path = \".\"; };\n"
				      "job = {\n"
				      "    type    = \"command\";\n"
				      "    run     = \"python3 main.py\";\n"
				      "    outputs = [\"out/**.mp4\"];\n"
				      "};\n";

static const char own_example[] =
	"allow_paths = [\"/data/voices\"];\n"
	"caps        = { per_day = 5.00; };\n"
	"notify      = { command = \"mail -s burst me@example.org\"; };\n"
	"providers   = { runpod = { api_key_command = \"pass runpod\"; }; };\n";

static void examples(FILE *to)
{
	static const struct {
		const char *text, *lines;
	} all[] = {
		{"Speech on this machine:", local_example},
		{"Speech by a neural voice on a rented GPU, with a volume that keeps its weights:",
		 cloud_example},
		{"A command on a rented GPU:", command_example},
		{"Your own file, ~/.config/burst/burst.cfg:", own_example},
	};

	fputs(".SH EXAMPLES\n", to);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (i)
			fputs(".PP\n", to);
		roff_paragraph(to, all[i].text);
		roff_example(to, all[i].lines);
	}
}

void keys_man(FILE *to)
{
	const struct reference_reader reader = {to, man_section, man_row};

	fputs(".TH BURST.CFG 5 \"\" \"burst " BURST_VERSION "\" \"File Formats\"\n.SH NAME\n"
	      "burst.cfg \\- what burst renders, and on what\n.SH DESCRIPTION\n",
	      to);
	roff_paragraph(to, description);
	examples(to);
	fputs(".SH KEYS\n", to);
	reference_read(&reader, job_registry, provider_registry);
	fputs(".SH FILES\n", to);
	roff_item(to, "./burst.cfg", "The project's file.");
	roff_item(to, "${XDG_CONFIG_HOME:-~/.config}/burst/burst.cfg", "Your own file.");
	fputs(".SH SEE ALSO\n.BR burst (1)\n", to);
}
