/* keys.c - the table of burst's own keys and the checks that need more than one key. */
#include "keys.h"

#include "base/clock.h"
#include "base/str.h"
#include "provider.h"

/* clang-format off */
static const struct option_spec volume_keys[] = {
	{"name", OPTION_TEXT, 0, NULL, "its name at the provider; no volume when absent", NULL},
	{"size_gb", OPTION_INT, 0, "20", "size of a new one, in GB", NULL},
	{"create", OPTION_BOOL, 0, "false",
	 "make it when it is missing (a volume bills for ever)", NULL},
	{NULL},
};

static const struct option_spec caps_keys[] = {
	{"max_cost", OPTION_MONEY, 0, "5.00", "stop before a run has cost this many dollars", NULL},
	{"max_duration", OPTION_DURATION, 0, "1h", "no pod of a run lives longer than this", NULL},
	{"max_price_per_hour", OPTION_MONEY, 0, NULL,
	 "take no offer dearer than this, in dollars", NULL},
	{"per_day", OPTION_MONEY, 0, NULL,
	 "dollars that all runs of a day may cost; in a project's file: that project's runs", NULL},
	{"per_month", OPTION_MONEY, 0, NULL, "the same for a calendar month", NULL},
	{NULL},
};

static const struct option_spec notify_keys[] = {
	{"on", OPTION_TEXTS, 0, NULL, "\"failed\", \"capped\", \"unreleased\", \"recovered\" (these when absent), \"done\"", NULL},
	{"desktop", OPTION_BOOL, 0, "false", "show it with notify-send", NULL},
	{"command", OPTION_TEXT, OPTION_USER_ONLY, NULL, "shell command that gets it on stdin", NULL},
	{"url", OPTION_TEXT, OPTION_USER_ONLY | OPTION_SECRET, NULL, "where it is posted, like \"https://ntfy.sh/a-name-nobody-guesses\"", NULL},
	{"git_note", OPTION_BOOL, OPTION_USER_ONLY, "false", "append a line to the note of a run's commit (git notes --ref=burst)", NULL},
	{"template", OPTION_TEXT, OPTION_USER_ONLY, NULL, "what url and command get: text with {job}, {event}, {error}, {cost}; the run's JSON when absent", NULL},
	{NULL},
};

static const struct option_spec code_keys[] = {
	{"path", OPTION_PATH, 0, NULL,
	 "the folder that is synced to the pods; .burstignore says what stays", NULL},
	{NULL},
};

static const struct option_spec pod_keys[] = {
	{"image", OPTION_TEXT, 0, NULL,
	 "container image; the provider's own choice when absent", NULL},
	{"disk_gb", OPTION_INT, 0, NULL, "disk of a pod's container, in GB", NULL},
	{"cpu", OPTION_INT, 0, NULL, "CPU cores at least", NULL},
	{"memory_gb", OPTION_INT, 0, NULL, "memory at least, in GB", NULL},
	{"worker_root", OPTION_BOOL, 0, "false",
	 "run setup, workers and commands as root: they may install packages, and read the key that a provider gives its pods", NULL},
	{"allow_unproven_switch", OPTION_BOOL, 0, "false",
	 "give work to pods that could not show that they can end themselves", NULL},
	{NULL},
};

static const struct option_spec deliver_keys[] = {
	{"run", OPTION_TEXT, 0, NULL,
	 "shell command; $BURST_OUTPUTS holds the rendered files and manifest.jsonl", NULL},
	{"on", OPTION_TEXT, 0, "cpu", "\"cpu\": a pod without a GPU, on the volume", NULL},
	{"outputs", OPTION_TEXTS, 0, NULL, "patterns of files to bring home (\"*.mp3\")", NULL},
	{"env", OPTION_TEXTS, 0, NULL, "variables that travel; those of job.env when absent", NULL},
	{"image", OPTION_TEXT, 0, NULL, "container image; the provider's own choice when absent", NULL},
	{"disk_gb", OPTION_INT, 0, NULL, "disk of its container, in GB", NULL},
	{"cpu", OPTION_INT, 0, NULL, "CPU cores at least", NULL},
	{"memory_gb", OPTION_INT, 0, NULL, "memory at least, in GB", NULL},
	{NULL},
};

const struct option_spec config_keys[] = {
	{"provider", OPTION_TEXTS, 0, "local",
	 "who rents the pods, tried in this order; \"local\" needs no account",
	 NULL},
	{"gpu", OPTION_TEXTS, OPTION_AUTO, NULL,
	 "acceptable GPUs, in order of preference, or \"none\": a pod without one; \"auto\" or absent: burst chooses", NULL},
	{"pods", OPTION_INT, OPTION_AUTO, NULL,
	 "pods at most; \"auto\" or absent: burst chooses. Fewer where more would hardly shorten the run", NULL},
	{"goal", OPTION_TEXT, 0, "cost", "what the planner makes small: \"cost\", \"time\", or \"balanced\" (see value_of_time)", NULL},
	{"value_of_time", OPTION_MONEY, 0, NULL, "what an hour of waiting costs you, in dollars, for goal = \"balanced\"", NULL},
	{"deadline", OPTION_TEXT, 0, NULL, "when all is to be done: \"20m\" from the start, or a time of day (\"07:00\")", NULL},
	{"spot", OPTION_BOOL, 0, "false", "take pods that may be taken away, for less money", NULL},
	{"wait", OPTION_DURATION, 0, "10m", "how long to wait for capacity", NULL},
	{"retry_until_up", OPTION_BOOL, 0, "false", "wait for capacity without end", NULL},
	{"lease", OPTION_DURATION, 0, "10m",
	 "a pod that hears nothing from us for so long ends itself", NULL},
	{"boot_limit", OPTION_DURATION, 0, "10m",
	 "a pod that does not answer by then is given back, or ends itself; sooner after three times what such pods took so far", NULL},
	{"keep_on_failure", OPTION_DURATION, 0, "0",
	 "keep a pod on which the job failed for so long, to look at it (it bills); not with -d", NULL},
	{"volume", OPTION_GROUP, 0, NULL,
	 "storage that outlives the pods: models, environments, code", volume_keys},
	{"caps", OPTION_GROUP, 0, NULL, "limits that stop a run", caps_keys},
	{"code", OPTION_GROUP, 0, NULL, "what is synced", code_keys},
	{"pod", OPTION_GROUP, 0, NULL, "what a pod must be like", pod_keys},
	{"deliver", OPTION_GROUP, 0, NULL,
	 "what follows when all is rendered and needs no GPU: joins, uploads", deliver_keys},
	{"notify", OPTION_GROUP, 0, NULL, "who is told how a run ended, where nobody watches", notify_keys},
	{"allow_paths", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "folders outside of a project that projects may read, sync and write to", NULL},
	{"volumes", OPTION_TEXTS, OPTION_USER_ONLY, NULL, "volumes that all projects may use besides their own", NULL},
	{"max_volume_gb", OPTION_INT, OPTION_USER_ONLY, "50", "largest volume that a project's file may create, in GB", NULL},
	{"weights_url", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "where weights come from in place of huggingface.co: a server with the same paths, which gets HF_TOKEN too", NULL},
	{"render_cache_mb", OPTION_INT, OPTION_USER_ONLY, "2000",
	 "renders kept in ~/.cache/burst/renders for all projects, in MB; 0: none", NULL},
	{"on_exit", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "shell command that gets the run's JSON on stdin at the end",
	 NULL},
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
	{NULL, "wait", 0, 168 * HOUR, "at most \"168h\" (retry_until_up waits without end)"},
	{NULL, "lease", 10 * SECOND, 24 * HOUR, "\"10s\" to \"24h\""},
	{NULL, "boot_limit", 5 * SECOND, 2 * HOUR, "\"5s\" to \"2h\""},
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

const char *keys_range(const char *path)
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

/* A new volume gets a name that every provider takes. One that is there already may have another:
 * its provider says so if not. */
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
		       "%s: volume.name: \"%s\" cannot name a new volume: a name has letters, "
		       "digits, '.', '_' and '-' only, at most 63, and "
		       "begins with none of '.' and '-'",
		       section_where(volume, "name"), str_text(&shown));
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
