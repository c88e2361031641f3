/* keys.c - the table of burst's own keys, and what walks the tables of burst, job types and
 * providers */
#include "state.h"
#include "example.h"

#include "base/clock.h"
#include "base/str.h"
#include "provider.h"

/* ---- config keys ---- */

#define SECOND INT64_C(1000)
#define HOUR   (3600 * SECOND)
#define DOLLAR INT64_C(1000000)

static const struct option_spec volume_keys[] = {
	{"name", OPTION_TEXT, 0, NULL, "name at the provider (absent: no volume)"},
	{"size_gb", OPTION_INT, 0, "20", "size of a new volume, in GB", .least = 1, .most = 100000},
	{"create", OPTION_BOOL, 0, "false",
	 "create it if it is missing (a volume bills until removed)"},
	{0},
};

static const struct option_spec caps_keys[] = {
	{"max_cost", OPTION_MONEY, 0, "5.00", "stop before a run has cost this many dollars",
	 .least = 1, .most = 1000000 * DOLLAR},
	{"max_duration", OPTION_DURATION, 0, "1h",
	 "no pod of a run lives longer than this; waiting in a free queue does not count",
	 .least = SECOND, .most = 720 * HOUR},
	{"max_price_per_hour", OPTION_MONEY, 0, NULL, "skip offers above this price, in dollars",
	 .least = 1, .most = 1000000 * DOLLAR},
	{"per_day", OPTION_MONEY, 0, NULL,
	 "cap on the cost of all runs of a day, in dollars; in a project's file: of that project's "
	 "runs"},
	{"per_month", OPTION_MONEY, 0, NULL, "the same for a calendar month"},
	{0},
};

static const struct option_spec notify_keys[] = {
	{"on", OPTION_TEXTS, 0, NULL,
	 "\"failed\", \"capped\", \"unreleased\", \"recovered\" (these when absent), \"done\""},
	{"desktop", OPTION_BOOL, 0, "false", "show the message with notify-send"},
	{"command", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "shell command that gets the message on stdin"},
	{"url", OPTION_TEXT, OPTION_USER_ONLY | OPTION_SECRET, NULL,
	 "URL to post to, like \"https://ntfy.sh/a-name-nobody-guesses\""},
	{"git_note", OPTION_BOOL, OPTION_USER_ONLY, "false",
	 "append a line to the note of a run's commit (git notes --ref=burst)"},
	{"template", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "text for url and command, with {job}, {event}, {error}, {cost}, {summary} (default: the "
	 "run's JSON; for ntfy {summary})"},
	{0},
};

static const struct option_spec code_keys[] = {
	{"path", OPTION_PATH, 0, NULL,
	 "folder synced to the pods; .burstignore, else git's rules, list what is not"},
	{0},
};

static const struct option_spec pod_keys[] = {
	{"image", OPTION_TEXT, 0, NULL, "container image (default: the provider's choice)"},
	{"disk_gb", OPTION_INT, 0, NULL, "disk of a pod's container, in GB", .least = 1,
	 .most = 100000},
	{"cpu", OPTION_INT, 0, NULL, "minimum number of CPU cores", .least = 1, .most = 1024},
	{"memory_gb", OPTION_INT, 0, NULL, "minimum memory, in GB", .least = 1, .most = 65536},
	{"worker_root", OPTION_BOOL, 0, "false",
	 "run setup, workers and commands as root: they may install packages, and read the key "
	 "that a provider gives its pods"},
	{"allow_unproven_switch", OPTION_BOOL, 0, "false",
	 "give work to pods that cannot prove that they can end themselves"},
	{0},
};

static const struct option_spec deliver_keys[] = {
	{"run", OPTION_TEXT, 0, NULL,
	 "shell command; $BURST_OUTPUTS holds the rendered files and manifest.jsonl"},
	{"on", OPTION_TEXT, 0, "cpu", "\"cpu\": a pod without a GPU, on the volume"},
	{"outputs", OPTION_TEXTS, 0, NULL, "patterns of files to fetch (\"*.mp3\")"},
	{"env", OPTION_TEXTS, 0, NULL, "variables sent to the pod (default: those of job.env)"},
	{"image", OPTION_TEXT, 0, NULL, "container image (default: the provider's choice)"},
	{"disk_gb", OPTION_INT, 0, NULL, "disk of its container, in GB"},
	{"cpu", OPTION_INT, 0, NULL, "minimum number of CPU cores"},
	{"memory_gb", OPTION_INT, 0, NULL, "minimum memory, in GB"},
	{0},
};

const struct option_spec config_keys[] = {
	{"provider", OPTION_TEXTS, 0, "local",
	 "providers of pods, tried in this order; \"local\" needs no account"},
	{"gpu", OPTION_TEXTS, OPTION_AUTO, NULL,
	 "acceptable GPUs, in order of preference; \"none\": a pod without one; \"auto\" or "
	 "absent: burst chooses"},
	{"pods", OPTION_INT, OPTION_AUTO, NULL,
	 "maximum number of pods; \"auto\" or absent: burst chooses; fewer if more would hardly "
	 "shorten the run",
	 .least = 1, .most = 1000},
	{"goal", OPTION_TEXT, 0, "cost",
	 "what the planner minimizes: \"cost\", \"time\", or \"balanced\" (see value_of_time)"},
	{"value_of_time", OPTION_MONEY, 0, NULL,
	 "cost of an hour of waiting, in dollars, for goal = \"balanced\""},
	{"deadline", OPTION_TEXT, 0, NULL,
	 "deadline: \"20m\" from the start, or a time of day (\"07:00\")"},
	{"spot", OPTION_BOOL, 0, "false", "use cheaper pods that the provider may reclaim"},
	{"wait", OPTION_DURATION, 0, "10m", "how long to wait for capacity", .least = 0,
	 .most = 168 * HOUR},
	{"retry_until_up", OPTION_BOOL, 0, "false", "wait for capacity without limit"},
	{"lease", OPTION_DURATION, 0, "10m", "a pod ends itself after this long without contact",
	 .least = 10 * SECOND, .most = 24 * HOUR},
	{"boot_limit", OPTION_DURATION, 0, "10m",
	 "release a pod that does not answer within this time; sooner after three times the usual "
	 "boot time",
	 .least = 5 * SECOND, .most = 2 * HOUR},
	{"keep_on_failure", OPTION_DURATION, 0, "0",
	 "keep a pod on which the job failed for this long, to inspect it (it bills); not with -d",
	 .least = 0, .most = 24 * HOUR},
	{"keep_warm", OPTION_TEXT, 0, "0",
	 "keep a pod without work for the next run for this long (it bills): \"5m\"; \"auto\": "
	 "while it pays, at most as long as its cold start took; \"0\": release it"},
	{"prewarm", OPTION_TEXT, 0, "off",
	 "`burst schedule add`: start this long before each time, so that pods work by then: "
	 "\"5m\"; "
	 "\"auto\": by the cold start; \"off\": at the time. --ahead replaces it"},
	{"volume", OPTION_GROUP, 0, NULL,
	 "storage that outlives the pods: models, environments, code", volume_keys},
	{"caps", OPTION_GROUP, 0, NULL, "limits that stop a run", caps_keys},
	{"code", OPTION_GROUP, 0, NULL, "what is synced", code_keys},
	{"pod", OPTION_GROUP, 0, NULL, "requirements on a pod", pod_keys},
	{"deliver", OPTION_GROUP, 0, NULL,
	 "steps after the render that need no GPU: joins, uploads", deliver_keys},
	{"notify", OPTION_GROUP, 0, NULL, "how to report the end of unattended runs", notify_keys},
	{"allow_paths", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "folders outside of a project that projects may read, sync and write to"},
	{"volumes", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "volumes that all projects may use besides their own"},
	{"max_volume_gb", OPTION_INT, OPTION_USER_ONLY, "50",
	 "largest volume that a project's file may create, in GB", .least = 1, .most = 100000},
	{"weights_url", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "server for weights instead of huggingface.co, with the same paths; it also gets "
	 "HF_TOKEN"},
	{"render_cache_mb", OPTION_INT, OPTION_USER_ONLY, "2000",
	 "size limit of the render cache ~/.cache/burst/renders, in MB; 0: no cache", .least = 0,
	 .most = 100000000},
	{"on_exit", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "shell command that gets the run's JSON on stdin at the end"},
	{"on_exit_limit", OPTION_DURATION, OPTION_USER_ONLY, "5m",
	 "kill on_exit's command, and all that it started, after this long: the job stays locked "
	 "until it ends",
	 .least = SECOND, .most = 24 * HOUR},
	{0},
};

/* The allowed values of a key, for messages and help; NULL: all of its type. The caller frees it.
 * */
static char *describe_range(const struct option_spec *spec)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (!spec->most)
		return NULL;
	if (spec->type == OPTION_DURATION) {
		config_add_duration(&text, (int64_t)spec->least);
		str_add(&text, " to ");
		config_add_duration(&text, (int64_t)spec->most);
	} else if (spec->type == OPTION_MONEY) {
		str_addf(&text, "more than 0 and at most %.0f dollars", spec->most / DOLLAR);
	} else {
		str_addf(&text, "%.10g to %.10g", spec->least, spec->most);
	}
	return str_detach(&text);
}

static int check_range(const struct section *s, const struct option_spec *spec, const char *path,
		       struct err *err)
{
	double value;

	if (!spec->most || !section_has(s, spec->key))
		return 0;
	value = spec->type == OPTION_DECIMAL ? section_decimal(s, spec->key)
					     : (double)section_int(s, spec->key);
	if (value >= spec->least && value <= spec->most)
		return 0;
	CLEANUP(free_text) char *range = describe_range(spec);
	return err_set(err, ERR_CONFIG, "%s: %s is out of range: it must be %s",
		       section_where(s, spec->key), path, range);
}

int keys_check_ranges(const struct section *s, const char *prefix, struct mistakes *m,
		      struct err *err)
{
	for (const struct option_spec *spec = section_table(s); spec->key; spec++) {
		CLEANUP(free_text) char *path = xasprintf("%s%s", prefix, spec->key);
		CLEANUP(free_text) char *inner = xasprintf("%s.", path);
		if (check_range(s, spec, path, err) < 0 && mistakes_note(m, path, err) < 0)
			return -1;
		if (spec->type == OPTION_GROUP &&
		    keys_check_ranges(section_group(s, spec->key), inner, m, err) < 0)
			return -1;
	}
	return 0;
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

static int check_prewarm(const struct section *top, struct err *err)
{
	const char *text = section_text(top, "prewarm");
	int64_t ms;

	if (!text || !strcmp(text, "auto") || !strcmp(text, "off"))
		return 0;
	if (duration_parse(text, &ms, NULL) == 0 && ms >= 0 && ms < 24 * HOUR)
		return 0;
	CLEANUP(str_free) struct str shown = STR_INIT;
	str_add_printable(&shown, text, strlen(text), 40);
	return err_set(err, ERR_CONFIG,
		       "%s: prewarm: \"%s\" is neither \"auto\", \"off\" nor a time below \"24h\", "
		       "like \"5m\"",
		       section_where(top, "prewarm"), str_text(&shown));
}

int keys_check(const struct section *top, struct mistakes *m, struct err *err)
{
	if (keys_check_ranges(top, "", m, err) < 0)
		return -1;
	if (check_keep_warm(top, err) < 0 && mistakes_note(m, "keep_warm", err) < 0)
		return -1;
	if (check_prewarm(top, err) < 0 && mistakes_note(m, "prewarm", err) < 0)
		return -1;
	if (check_volume_name(section_group(top, "volume"), err) < 0 &&
	    mistakes_note(m, "volume.name", err) < 0)
		return -1;
	if (provider_check_image(section_group(top, "pod"), "pod", "image", err) < 0 &&
	    mistakes_note(m, "pod.image", err) < 0)
		return -1;
	return provider_check_image(section_group(top, "deliver"), "deliver", "image", err) < 0
		       ? mistakes_note(m, "deliver.image", err)
		       : 0;
}

/* ---- reference ---- */

/* Passes a table's keys, and those of its groups, as rows whose paths begin with prefix. */
static void pass_rows(const struct reference_reader *to, const struct option_spec *table,
		      const char *prefix)
{
	for (; table->key; table++) {
		CLEANUP(free_text) char *path = xasprintf("%s%s", prefix, table->key);
		const struct value_type *type = &value_types[table->type];
		CLEANUP(free_text)
		char *kind = xasprintf("%s%s", type->kind,
				       table->flags & OPTION_AUTO ? " or \"auto\"" : "");
		CLEANUP(free_text)
		char *value = table->def
				      ? xasprintf("%s%s%s", type->before, table->def, type->behind)
				      : NULL;
		CLEANUP(free_text) char *range = describe_range(table);
		struct reference_row row = {
			.path = path,
			.kind = kind,
			.value = value,
			.help = table->help,
			.range = range,
			.flags = table->flags,
		};

		to->row(to->ctx, &row);
		if (table->group) {
			CLEANUP(free_text) char *inner = xasprintf("%s.", path);
			pass_rows(to, table->group, inner);
		}
	}
}

void reference_read(const struct reference_reader *to, const struct job_ops *const *jobs,
		    const struct provider_ops *const *providers)
{
	to->section(to->ctx, "Keys of burst", "They stand at the top of burst.cfg.");
	pass_rows(to, config_keys, "");
	for (; *jobs; jobs++) {
		CLEANUP(free_text) char *title = xasprintf("Keys of a %s job", (*jobs)->type);
		to->section(to->ctx, title, (*jobs)->summary ? (*jobs)->summary : "");
		pass_rows(to, (*jobs)->options, "job.");
	}
	for (; *providers; providers++) {
		CLEANUP(free_text)
		char *title = xasprintf("Keys of the %s provider", (*providers)->name);
		CLEANUP(free_text) char *prefix = xasprintf("providers.%s.", (*providers)->name);
		to->section(to->ctx, title, (*providers)->summary ? (*providers)->summary : "");
		pass_rows(to, (*providers)->options, prefix);
	}
}
