/* man.c - writes the man page burst(1) from the tables of commands and flags. */
#include "cmd/cmd.h"
#include "roff.h"
#include "text.h"

static const struct {
	const char *name, *text;
} statuses[] =
	{
		{"0", "Everything is done and every pod is confirmed gone."},
		{"1", "The job failed, in part or as a whole, or this machine failed."},
		{"2", "The command line or the config is wrong."},
		{"3", "Credentials were refused, or the account cannot pay."},
		{"4", "No capacity in time."},
		{"5", "A cap was reached: cost or duration."},
		{"6", "The provider or the network failed."},
		{"7", "The same job is already running."},
		{"9", "A release could not be confirmed: a pod may still bill. The message "
		      "names the pod and the command that releases it."},
		{"129, 130, 143", "Interrupted by a signal; the pods are confirmed gone."},
},
  files[] =
	  {
		  {"./burst.cfg", "The job: what to render and on what. It comes with a project "
				  "and is not trusted: it cannot name commands to run "
				  "here, endpoints, keys, or paths outside the project. "
				  "See burst.cfg(5)."},
		  {"${XDG_CONFIG_HOME:-~/.config}/burst/burst.cfg",
		   "Your accounts and defaults, and what projects may do."},
		  {"${BURST_STATE_DIR:-${XDG_STATE_HOME:-~/.local/state}/burst}",
		   "The ledger (ledger.db), the logs of runs (runs/), and the volumes of the "
		   "local provider (volumes/)."},
		  {"${BURST_CACHE_DIR:-${XDG_CACHE_HOME:-~/.cache}/burst}/renders",
		   "The render cache. If BURST_CACHE_DIR is set and empty, there is none."},
		  {"~/.runpod/config.toml, ~/.modal.toml",
		   "Keys, as the providers' own tools store them."},
		  {".burstignore, .gitignore",
		   "What is not synced to the pods; git's other rules count as well."},
},
  variables[] = {
	  {"RUNPOD_API_KEY", "The key of the RunPod account."},
	  {"MODAL_TOKEN_ID, MODAL_TOKEN_SECRET", "The keys of the Modal account."},
	  {"RUNPOD_API_URL, RUNPOD_S3_URL, MODAL_SERVER_URL", "Other endpoints, for tests."},
	  {"Keys to read the files of a network volume without a pod.",
	   "Keys of RunPod's S3-compatible API: files of a volume are read without a pod."},
	  {"BURST_PROVIDER_PATH", "Providers outside this program: absolute paths of shared "
				  "objects or of folders of them, with \":\" between."},
	  {"BURST_STATE_DIR, BURST_CACHE_DIR, XDG_STATE_HOME, XDG_CACHE_HOME, XDG_CONFIG_HOME, "
	   "HOME",
	   "Absolute paths of the folders above."},
	  {"NO_COLOR", "If set to anything, no colours are used."},
};

static void flag(FILE *to, const struct opt *o)
{
	char text[80];

	roff_item(to, text_flag(text, sizeof(text), o) + strspn(text, " "), o->help);
}

static void command(FILE *to, const struct cmd *c)
{
	fputs(".SS ", to);
	roff_text(to, c->name);
	if (c->args) {
		fputc(' ', to);
		roff_text(to, c->args);
	}
	fputc('\n', to);
	roff_paragraph(to, c->summary);
	if (c->details) {
		fputs(".PP\n", to);
		roff_paragraph(to, c->details);
	}
	for (const struct opt *o = c->opts; o && o->name; o++)
		flag(to, o);
	if (c->json)
		flag(to, &common_opts[1]);
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

static const struct {
	const char *text, *lines;
} examples[] = {
	{"First sound, without an account or a GPU:", "burst init -y\nburst run\n"},
	{"Rent, render, and return once the pods need this machine no more:",
	 "burst run -d\nburst attach\n"},
	{"See what a run would cost before it rents anything:",
	 "burst plan\nburst plan --deadline 07:00 --explain\n"},
	{"End everything that this machine started:", "burst ps\nburst cancel RUN\nburst reap\n"},
	{"Render every night, and what is committed:",
	 "burst schedule add nightly daily 02:00\nburst hook install\n"},
};

static void examples_part(FILE *to)
{
	fputs(".SH EXAMPLES\n", to);
	for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
		if (i)
			fputs(".PP\n", to);
		roff_paragraph(to, examples[i].text);
		roff_example(to, examples[i].lines);
	}
}

void man_print(FILE *to, const struct cmd *const *commands)
{
	fputs(".TH BURST 1 \"\" \"burst " BURST_VERSION "\" \"User Commands\"\n.SH NAME\n"
	      "burst \\- rent a GPU for exactly as long as a render needs it\n.SH SYNOPSIS\n.B "
	      "burst\n"
	      "COMMAND [ARGUMENTS] [FLAGS]\n.SH DESCRIPTION\n",
	      to);
	roff_paragraph(to,
		       "burst reads a job (burst.cfg(5)), rents pods, syncs the code over SSH and "
		       "runs the job in batches. It fetches the outputs while the job runs, "
		       "releases the pods and proves that they are gone. It records billed "
		       "seconds beside compute seconds.\n\n"
		       "Results go to standard output, everything else to standard error.");
	examples_part(to);
	commands_part(to, commands);
	fputs(".SH EXIT STATUS\n", to);
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		roff_item(to, statuses[i].name, statuses[i].text);
	fputs(".SH FILES\n", to);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		roff_item(to, files[i].name, files[i].text);
	fputs(".SH ENVIRONMENT\n", to);
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		roff_item(to, variables[i].name, variables[i].text);
	fputs(".SH SEE ALSO\n.BR burst.cfg (5)\n", to);
}
