/* man.c - writes the man pages from the tables of commands, options and keys. */
#include "cmd.h"

#include "config/keys.h"
#include "text.h"

static const struct {
	const char *name, *text;
} statuses[] =
	{
		{"0", "All is done and every pod is confirmed gone."},
		{"1", "The job failed, in part or as a whole; or something on this machine did."},
		{"2", "The command line or the config is wrong."},
		{"3", "Credentials were refused, or the account cannot pay."},
		{"4", "No capacity in time."},
		{"5", "A cap was reached: cost or duration."},
		{"6", "The provider or the network failed."},
		{"7", "The same job is running already."},
		{"9", "A release could not be confirmed: something may still be billing. The "
		      "message names the pod and the "
		      "command that ends it."},
		{"129, 130, 143", "Interrupted by a signal; the pods are confirmed gone."},
},
  files[] =
	  {
		  {"./burst.cfg", "The job: what to render and on what. It comes with a project "
				  "and is not trusted: it cannot name "
				  "commands to run here, endpoints or keys, nor paths "
				  "outside of the project."},
		  {"${XDG_CONFIG_HOME:-~/.config}/burst/burst.cfg",
		   "Your accounts and defaults, and what projects may do (allow_paths, "
		   "volumes, max_volume_gb), and the size of the render cache (render_cache_mb)."},
		  {"${BURST_STATE_DIR:-${XDG_STATE_HOME:-~/.local/state}/burst}",
		   "The ledger (ledger.db), the logs of the runs (runs/), and the volumes of the "
		   "local provider (volumes/)."},
		  {"${BURST_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/burst}/renders",
		   "The render cache. BURST_CACHE_DIR set and empty: none."},
		  {"~/.runpod/config.toml, ~/.modal.toml",
		   "Keys, as the vendors' own tools leave them there."},
		  {".burstignore, .gitignore", "What stays here when the code is synced."},
},
  variables[] = {
	  {"RUNPOD_API_KEY", "The key of the RunPod account."},
	  {"MODAL_TOKEN_ID, MODAL_TOKEN_SECRET", "The keys of the Modal account."},
	  {"RUNPOD_API_URL, RUNPOD_S3_URL, MODAL_SERVER_URL", "Other endpoints, for tests."},
	  {"RUNPOD_S3_ACCESS_KEY, RUNPOD_S3_SECRET_KEY",
	   "For files of a network volume without a pod."},
	  {"BURST_PROVIDER_PATH", "Providers outside this program: shared objects, or folders of "
				  "them, by absolute paths with \":\" between."},
	  {"BURST_STATE_DIR, BURST_CACHE_DIR, XDG_STATE_HOME, XDG_CACHE_HOME, XDG_CONFIG_HOME, "
	   "HOME",
	   "Where the files above are: absolute paths."},
	  {"NO_COLOR", "When set to anything: no colours."},
};

/* Roff takes a dot or a quote at the start of a line as its own, and a bare - as a hyphen. */
static void roff(FILE *to, const char *text)
{
	bool start = true;

	for (; *text; text++) {
		if (start && (*text == '.' || *text == '\''))
			fputs("\\&", to);
		start = *text == '\n';
		if (*text == '\\')
			fputs("\\e", to);
		else if (*text == '-')
			fputs("\\-", to);
		else
			fputc(*text, to);
	}
}

static void bold_line(FILE *to, const char *text)
{
	fputs(".B ", to);
	roff(to, text);
	fputc('\n', to);
}

static void paragraph(FILE *to, const char *text)
{
	for (; *text; text++) {
		const char *end = strchr(text, '\n');
		CLEANUP(free_text)
		char *line = end ? xstrndup(text, (size_t)(end - text)) : xstrdup(text);
		roff(to, line);
		fputs(*line ? "\n" : ".PP\n", to);
		if (!end)
			break;
		if (*line && end[1] != '\n')
			fputs(".br\n", to);
		text = end;
	}
}

static void item(FILE *to, const char *name, const char *text)
{
	fputs(".TP\n", to);
	bold_line(to, name);
	paragraph(to, text);
}

static void flag(FILE *to, const struct opt *o)
{
	char text[80];

	item(to, text_flag(text, sizeof(text), o) + strspn(text, " "), o->help);
}

static void command(FILE *to, const struct cmd *c)
{
	fputs(".SS ", to);
	roff(to, c->name);
	if (c->args) {
		fputc(' ', to);
		roff(to, c->args);
	}
	fputc('\n', to);
	paragraph(to, c->summary);
	if (c->details) {
		fputs(".PP\n", to);
		paragraph(to, c->details);
	}
	for (const struct opt *o = c->opts; o && o->name; o++)
		flag(to, o);
	if (c->json)
		flag(to, &common_opts[1]);
}

static void key_table(FILE *to, const struct option_spec *table, const char *prefix)
{
	for (; table->key; table++) {
		CLEANUP(free_text) char *name = xasprintf("%s%s", prefix, table->key);
		CLEANUP(free_text) char *inner = xasprintf("%s.", name);
		CLEANUP(free_text)
		char *text =
			xasprintf("%s%s%s%s%s", table->help, table->def ? " (default: " : "",
				  table->def ? table->def : "", table->def ? ")" : "",
				  table->flags & OPTION_USER_ONLY ? "; only in your own file" : "");
		item(to, name, text);
		if (table->type == OPTION_GROUP)
			key_table(to, table->group, inner);
	}
}

static void commands_part(FILE *to, const struct cmd *const *commands)
{
	fputs(".SH COMMANDS\n", to);
	for (; *commands; commands++)
		if (!(*commands)->hidden)
			command(to, *commands);
	fputs(".SH FLAGS OF EVERY COMMAND\n", to);
	for (const struct opt *o = common_opts; o->name; o++)
		if (strcmp(o->name, "json"))
			flag(to, o);
}

static void config_part(FILE *to)
{
	fputs(".SH CONFIG\n", to);
	paragraph(to, "Written as key = value; with texts in quotes, lists in [ ] and groups in { "
		      "}. Durations are texts: "
		      "\"90s\", \"20m\", \"2h\". Relative paths are relative to the file they "
		      "stand in. The keys of a "
		      "job and of each provider stand in the file that `burst init` writes.");
	key_table(to, config_keys, "");
}

void man_print(FILE *to, const struct cmd *const *commands)
{
	fputs(".TH BURST 1 \"\" \"burst " BURST_VERSION "\" \"User Commands\"\n.SH NAME\n"
	      "burst \\- rent a GPU for exactly as long as a render needs it\n.SH SYNOPSIS\n.B "
	      "burst\n"
	      "COMMAND [ARGUMENTS] [FLAGS]\n.SH DESCRIPTION\n",
	      to);
	paragraph(to, "It reads a job, rents pods, syncs the code over SSH, runs the job in "
		      "batches, brings the outputs home "
		      "while it still runs, gives each pod back, proves that it is gone, and "
		      "writes down the billed seconds "
		      "beside the compute seconds. Results go to standard output, all else to "
		      "standard error.");
	commands_part(to, commands);
	config_part(to);
	fputs(".SH EXIT STATUS\n", to);
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		item(to, statuses[i].name, statuses[i].text);
	fputs(".SH FILES\n", to);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		item(to, files[i].name, files[i].text);
	fputs(".SH ENVIRONMENT\n", to);
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		item(to, variables[i].name, variables[i].text);
}
