/* keys.c - the table of burst's own keys, and what walks the tables of burst, job types and
 * providers */
#include "state.h"
#include "example.h"

#include "base/clock.h"
#include "base/str.h"
#include "provider.h"

/* ---- config keys ----
 * The table of burst's own keys, and the checks of ranges and names. */

/* clang-format off */
static const struct option_spec volume_keys[] = {
	{"name", OPTION_TEXT, 0, NULL, "name at the provider (absent: no volume)", NULL},
	{"size_gb", OPTION_INT, 0, "20", "size of a new volume, in GB", NULL},
	{"create", OPTION_BOOL, 0, "false",
	 "create it if it is missing (a volume bills until removed)", NULL},
	{NULL},
};

static const struct option_spec caps_keys[] = {
	{"max_cost", OPTION_MONEY, 0, "5.00", "stop before a run has cost this many dollars", NULL},
	{"max_duration", OPTION_DURATION, 0, "1h", "no pod of a run lives longer than this", NULL},
	{"max_price_per_hour", OPTION_MONEY, 0, NULL,
	 "skip offers above this price, in dollars", NULL},
	{"per_day", OPTION_MONEY, 0, NULL,
	 "cap on the cost of all runs of a day, in dollars; in a project's file: of that "
		"project's runs", NULL},
	{"per_month", OPTION_MONEY, 0, NULL, "the same for a calendar month", NULL},
	{NULL},
};

static const struct option_spec notify_keys[] = {
	{"on", OPTION_TEXTS, 0, NULL, "\"failed\", \"capped\", \"unreleased\", \"recovered\" (these when absent), \"done\"", NULL},
	{"desktop", OPTION_BOOL, 0, "false", "show the message with notify-send", NULL},
	{"command", OPTION_TEXT, OPTION_USER_ONLY, NULL, "shell command that gets the message "
		"on stdin", NULL},
	{"url", OPTION_TEXT, OPTION_USER_ONLY | OPTION_SECRET, NULL, "URL to post to, like "
		"\"https://ntfy.sh/a-name-nobody-guesses\"", NULL},
	{"git_note", OPTION_BOOL, OPTION_USER_ONLY, "false", "append a line to the note of a run's commit (git notes --ref=burst)", NULL},
	{"template", OPTION_TEXT, OPTION_USER_ONLY, NULL, "text for url and command, with "
		"{job}, {event}, {error}, {cost}, {summary} "
		"(default: the run's JSON; for ntfy {summary})", NULL},
	{NULL},
};

static const struct option_spec code_keys[] = {
	{"path", OPTION_PATH, 0, NULL,
	 "folder synced to the pods; .burstignore, else git's rules, list what is not", NULL},
	{NULL},
};

static const struct option_spec pod_keys[] = {
	{"image", OPTION_TEXT, 0, NULL,
	 "container image (default: the provider's choice)", NULL},
	{"disk_gb", OPTION_INT, 0, NULL, "disk of a pod's container, in GB", NULL},
	{"cpu", OPTION_INT, 0, NULL, "minimum number of CPU cores", NULL},
	{"memory_gb", OPTION_INT, 0, NULL, "minimum memory, in GB", NULL},
	{"worker_root", OPTION_BOOL, 0, "false",
	 "run setup, workers and commands as root: they may install packages, and read the key that a provider gives its pods", NULL},
	{"allow_unproven_switch", OPTION_BOOL, 0, "false",
	 "give work to pods that cannot prove that they can end themselves", NULL},
	{NULL},
};

static const struct option_spec deliver_keys[] = {
	{"run", OPTION_TEXT, 0, NULL,
	 "shell command; $BURST_OUTPUTS holds the rendered files and manifest.jsonl", NULL},
	{"on", OPTION_TEXT, 0, "cpu", "\"cpu\": a pod without a GPU, on the volume", NULL},
	{"outputs", OPTION_TEXTS, 0, NULL, "patterns of files to fetch (\"*.mp3\")", NULL},
	{"env", OPTION_TEXTS, 0, NULL, "variables sent to the pod (default: those of job.env)", NULL},
	{"image", OPTION_TEXT, 0, NULL, "container image (default: the provider's choice)", NULL},
	{"disk_gb", OPTION_INT, 0, NULL, "disk of its container, in GB", NULL},
	{"cpu", OPTION_INT, 0, NULL, "minimum number of CPU cores", NULL},
	{"memory_gb", OPTION_INT, 0, NULL, "minimum memory, in GB", NULL},
	{NULL},
};

const struct option_spec config_keys[] = {
	{"provider", OPTION_TEXTS, 0, "local",
	 "providers of pods, tried in this order; \"local\" needs no account",
	 NULL},
	{"gpu", OPTION_TEXTS, OPTION_AUTO, NULL,
	 "acceptable GPUs, in order of preference; \"none\": a pod without one; \"auto\" or "
		"absent: burst chooses", NULL},
	{"pods", OPTION_INT, OPTION_AUTO, NULL,
	 "maximum number of pods; \"auto\" or absent: burst chooses; fewer if more would hardly "
		"shorten the run", NULL},
	{"goal", OPTION_TEXT, 0, "cost", "what the planner minimizes: \"cost\", \"time\", or "
		"\"balanced\" (see value_of_time)", NULL},
	{"value_of_time", OPTION_MONEY, 0, NULL, "cost of an hour of waiting, in dollars, for "
		"goal = \"balanced\"", NULL},
	{"deadline", OPTION_TEXT, 0, NULL, "deadline: \"20m\" from the start, or a time of day "
		"(\"07:00\")", NULL},
	{"spot", OPTION_BOOL, 0, "false", "use cheaper pods that the provider may reclaim", NULL},
	{"wait", OPTION_DURATION, 0, "10m", "how long to wait for capacity", NULL},
	{"retry_until_up", OPTION_BOOL, 0, "false", "wait for capacity without limit", NULL},
	{"lease", OPTION_DURATION, 0, "10m",
	 "a pod ends itself after this long without contact", NULL},
	{"boot_limit", OPTION_DURATION, 0, "10m",
	 "release a pod that does not answer within this time; sooner after three times the "
		"usual boot time", NULL},
	{"keep_on_failure", OPTION_DURATION, 0, "0",
	 "keep a pod on which the job failed for this long, to inspect it (it bills); not with "
		"-d", NULL},
	{"keep_warm", OPTION_TEXT, 0, "0",
	 "keep a pod without work for the next run for this long (it bills): \"5m\"; \"auto\": "
		"while it pays, at most as long as its cold start took; \"0\": release it", NULL},
	{"volume", OPTION_GROUP, 0, NULL,
	 "storage that outlives the pods: models, environments, code", volume_keys},
	{"caps", OPTION_GROUP, 0, NULL, "limits that stop a run", caps_keys},
	{"code", OPTION_GROUP, 0, NULL, "what is synced", code_keys},
	{"pod", OPTION_GROUP, 0, NULL, "requirements on a pod", pod_keys},
	{"deliver", OPTION_GROUP, 0, NULL,
	 "steps after the render that need no GPU: joins, uploads", deliver_keys},
	{"notify", OPTION_GROUP, 0, NULL, "how to report the end of unattended runs", notify_keys},
	{"allow_paths", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "folders outside of a project that projects may read, sync and write to", NULL},
	{"volumes", OPTION_TEXTS, OPTION_USER_ONLY, NULL, "volumes that all projects may use besides their own", NULL},
	{"max_volume_gb", OPTION_INT, OPTION_USER_ONLY, "50", "largest volume that a project's file may create, in GB", NULL},
	{"weights_url", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "server for weights instead of huggingface.co, with the same paths; it also gets "
		"HF_TOKEN", NULL},
	{"render_cache_mb", OPTION_INT, OPTION_USER_ONLY, "2000",
	 "size limit of the render cache ~/.cache/burst/renders, in MB; 0: no cache", NULL},
	{"on_exit", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "shell command that gets the run's JSON on stdin at the end",
	 NULL},
	{"on_exit_limit", OPTION_DURATION, OPTION_USER_ONLY, "5m",
	 "kill on_exit's command, and all that it started, after this long: the job stays locked "
		"until it ends", NULL},
	{NULL},
};

#define SECOND	INT64_C(1000)
#define HOUR	(3600 * SECOND)
#define DOLLAR	INT64_C(1000000)
#define ANY	INT64_MAX

static const struct {
	const char *group, *key; /* group NULL: at the top */
	int64_t least, most;
	const char *wanted;
} bounds[] = {
	{NULL, "pods", 1, 1000, "1 to 1000"},
	{NULL, "wait", 0, 168 * HOUR, "at most \"168h\" (retry_until_up waits without limit)"},
	{NULL, "lease", 10 * SECOND, 24 * HOUR, "\"10s\" to \"24h\""},
	{NULL, "boot_limit", 5 * SECOND, 2 * HOUR, "\"5s\" to \"2h\""},
	{NULL, "on_exit_limit", SECOND, 24 * HOUR, "\"1s\" to \"24h\""},
	{NULL, "keep_on_failure", 0, 24 * HOUR, "at most \"24h\""},
	{"volume", "size_gb", 1, 100000, "1 to 100000"},
	{NULL, "max_volume_gb", 1, 100000, "1 to 100000"},
	{NULL, "render_cache_mb", 0, 100000000, "0 (no cache) to 100000000"},
	{"caps", "max_cost", 1, 1000000 * DOLLAR, "more than 0 and at most 1000000 dollars"},
	{"caps", "max_duration", SECOND, 720 * HOUR, "\"1s\" to \"720h\""},
	{"caps", "max_price_per_hour", 1, ANY, "more than 0"},
	{"pod", "disk_gb", 1, 100000, "1 to 100000"},
	{"pod", "cpu", 1, 1024, "1 to 1024"},
	{"pod", "memory_gb", 1, 65536, "1 to 65536"},
};
/* clang-format on */

/* The allowed values of a key ("caps.max_cost"), for messages and help. NULL: all of its type. */
static const char *keys_range(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
		const char *rest = path;
		size_t len = bounds[i].group ? strlen(bounds[i].group) : 0;

		if (len && (strncmp(path, bounds[i].group, len) != 0 || path[len] != '.'))
			continue;
		rest += len ? len + 1 : 0;
		if (!strcmp(rest, bounds[i].key))
			return bounds[i].wanted;
	}
	return NULL;
}

static int check_range(const struct section *top, size_t i, struct err *err)
{
	const char *group = bounds[i].group, *key = bounds[i].key;
	const struct section *s = group ? section_group(top, group) : top;

	if (!section_has(s, key))
		return 0;
	int64_t value = section_int(s, key);
	if (value >= bounds[i].least && value <= bounds[i].most)
		return 0;
	return err_set(err, ERR_CONFIG, "%s: %s%s%s is out of range: it must be %s",
		       section_where(s, key), group ? group : "", group ? "." : "", key,
		       bounds[i].wanted);
}

/* Requires a new volume's name to fit every provider. An existing volume may have another name; its
 * provider reports a bad one. */
static int check_volume_name(const struct section *volume, struct err *err)
{
	const char *name = section_text(volume, "name");
	size_t len = name ? strlen(name) : 0;

	if (!len || !section_bool(volume, "create") ||
	    (len < 64 && name[0] != '.' && name[0] != '-' &&
	     strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
		     len))
		return 0;
	CLEANUP(str_free) struct str shown = STR_INIT;
	str_add_printable(&shown, name, len, 80);
	return err_set(err, ERR_CONFIG,
		       "%s: volume.name: \"%s\" is not a valid volume name: use letters, "
		       "digits, '.', '_' and '-', at most 63, not beginning with '.' or '-'",
		       section_where(volume, "name"), str_text(&shown));
}

static int check_keep_warm(const struct section *top, struct err *err)
{
	const char *text = section_text(top, "keep_warm");
	int64_t ms;

	if (!text || !strcmp(text, "auto"))
		return 0;
	if (duration_parse(text, &ms, NULL) == 0 && ms >= 0 && ms <= 24 * HOUR)
		return 0;
	CLEANUP(str_free) struct str shown = STR_INIT;
	str_add_printable(&shown, text, strlen(text), 40);
	return err_set(err, ERR_CONFIG,
		       "%s: keep_warm: \"%s\" is neither \"auto\" nor a time up to \"24h\", like "
		       "\"5m\"",
		       section_where(top, "keep_warm"), str_text(&shown));
}

int keys_check_ranges(const struct section *top, struct mistakes *m, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
		CLEANUP(free_text)
		char *path = xasprintf("%s%s%s", bounds[i].group ? bounds[i].group : "",
				       bounds[i].group ? "." : "", bounds[i].key);
		if (check_range(top, i, err) < 0 && mistakes_note(m, path, err) < 0)
			return -1;
	}
	if (check_keep_warm(top, err) < 0 && mistakes_note(m, "keep_warm", err) < 0)
		return -1;
	if (check_volume_name(section_group(top, "volume"), err) < 0 &&
	    mistakes_note(m, "volume.name", err) < 0)
		return -1;
	if (provider_check_image(section_group(top, "pod"), "pod", "image", err) < 0 &&
	    mistakes_note(m, "pod.image", err) < 0)
		return -1;
	if (provider_check_image(section_group(top, "deliver"), "deliver", "image", err) < 0 &&
	    mistakes_note(m, "deliver.image", err) < 0)
		return -1;
	return 0;
}

/* ---- reference ----
 * Walks the key tables of burst, of the job types and of the providers. */

static const char *kind_of(const struct option_spec *spec)
{
	switch (spec->type) {
	case OPTION_TEXT: return "text";
	case OPTION_PATH: return "path";
	case OPTION_INT:
		return spec->flags & OPTION_AUTO ? "whole number or \"auto\"" : "whole number";
	case OPTION_DECIMAL: return "number";
	case OPTION_BOOL: return "true or false";
	case OPTION_DURATION: return "duration";
	case OPTION_MONEY: return "dollars";
	case OPTION_TEXTS:
		return spec->flags & OPTION_AUTO ? "list of texts or \"auto\"" : "list of texts";
	case OPTION_GROUP: return "group";
	case OPTION_GROUPS: return "list of groups";
	}
	return "";
}

/* The caller frees it. NULL: no default. */
static char *default_of(const struct option_spec *spec)
{
	if (!spec->def)
		return NULL;
	switch (spec->type) {
	case OPTION_TEXT:
	case OPTION_PATH:
	case OPTION_DURATION: return xasprintf("\"%s\"", spec->def);
	case OPTION_TEXTS: return xasprintf("[\"%s\"]", spec->def);
	case OPTION_INT:
	case OPTION_DECIMAL:
	case OPTION_BOOL:
	case OPTION_MONEY:
	case OPTION_GROUP:
	case OPTION_GROUPS: break;
	}
	return xstrdup(spec->def);
}

static void read_table(const struct reference_reader *to, const struct option_spec *table,
		       const char *prefix)
{
	for (; table->key; table++) {
		CLEANUP(free_text) char *path = xasprintf("%s%s", prefix, table->key);
		CLEANUP(free_text) char *value = default_of(table);
		struct reference_row row = {
			.path = path,
			.kind = kind_of(table),
			.value = value,
			.help = table->help,
			.range = keys_range(path),
			.flags = table->flags,
		};

		to->row(to->ctx, &row);
		if (table->group) {
			CLEANUP(free_text) char *inner = xasprintf("%s.", path);
			read_table(to, table->group, inner);
		}
	}
}

void reference_read(const struct reference_reader *to, const struct job_ops *const *jobs,
		    const struct provider_ops *const *providers)
{
	to->section(to->ctx, "Keys of burst", "They stand at the top of burst.cfg.");
	read_table(to, config_keys, "");
	for (; *jobs; jobs++) {
		CLEANUP(free_text) char *title = xasprintf("Keys of a %s job", (*jobs)->type);
		to->section(to->ctx, title, (*jobs)->summary ? (*jobs)->summary : "");
		read_table(to, (*jobs)->options, "job.");
	}
	for (; *providers; providers++) {
		CLEANUP(free_text)
		char *title = xasprintf("Keys of the %s provider", (*providers)->name);
		CLEANUP(free_text) char *prefix = xasprintf("providers.%s.", (*providers)->name);
		to->section(to->ctx, title, (*providers)->summary ? (*providers)->summary : "");
		read_table(to, (*providers)->options, prefix);
	}
}
