/* command.c - jobs of type "command": any shell command, once on each pod. */
#include "command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/pattern.h"
#include "base/path.h"
#include "jobs/common.h"
#include "jobs/foreign.h"
#include "jobs/manifest.h"
#include "size.h"

#define PODS_MAX           1000
#define MONTH_MS           INT64_C(2592000000)
#define CHECKPOINT_MOST_MB 1000000
#define KEY_VERSION        "burst-command-1"

static const struct option_spec options[] = {
	JOB_COMMON_OPTIONS,
	{"run", OPTION_TEXT, OPTION_REQUIRED, NULL,
	 "the shell command; $BURST_INDEX of $BURST_COUNT says which pod it is"},
	{"outputs", OPTION_TEXTS, 0, NULL,
	 "files to fetch, as in [\"out/**.mp4\"]; ** crosses folders"},
	{"no_outputs", OPTION_BOOL, 0, "false",
	 "the command stores its results elsewhere: nothing is fetched"},
	{"size", OPTION_TEXT, 0, NULL,
	 "what its time grows with, like \"bytes of data/*.csv\", \"lines of names.txt\" or a "
	 "number; each pod has an equal share of it"},
	{"stream", OPTION_BOOL, 0, "false",
	 "fetch a file when it is renamed to a matching name, not only at the end of the command"},
	{"checkpoint", OPTION_DURATION, 0, NULL,
	 "how often $BURST_CHECKPOINT is saved for the next attempt; absent: by how long a save "
	 "takes and how often pods are interrupted",
	 .least = 1000, .most = MONTH_MS},
	{"checkpoint_max_mb", OPTION_INT, 0, "1000",
	 "without a volume, checkpoints are kept on this machine up to this size, in MB",
	 .least = 0, .most = CHECKPOINT_MOST_MB},
	{0},
};

struct job {
	char *output, *run, *setup, *speed_options;
	char **outputs, **env;
	struct segment *segments;
	size_t count;
	struct job_needs needs;
	char commit[65]; /* commit whose files were read; "": the working tree */
};

static void command_free(struct job *job)
{
	if (!job)
		return;
	for (size_t i = 0; i < job->count; i++) {
		free(job->segments[i].id);
		free(job->segments[i].group);
	}
	free(job->segments);
	texts_free(job->outputs);
	texts_free(job->env);
	free(job->output);
	free(job->run);
	free(job->setup);
	free(job->speed_options);
	free(job);
}

/* ---- reading the settings ---- */

static bool is_empty(const char *text)
{
	return !text || text[strspn(text, " \t\r\n")] == '\0';
}

/* Sets a key from the command, its outputs and the pod's number; the engine adds the tree. */
static void make_key(const struct job *job, struct segment *segment)
{
	struct sha256 *h = sha256_new();

	sha256_add(h, KEY_VERSION, sizeof(KEY_VERSION));
	sha256_add(h, job->run, strlen(job->run) + 1);
	for (char **o = job->outputs; *o; o++)
		sha256_add(h, *o, strlen(*o) + 1);
	sha256_add(h, segment->id, strlen(segment->id) + 1);
	sha256_finish(h, segment->key);
}

static void make_segments(struct job *job, int pods)
{
	job->count = (size_t)MAX(pods, 1);
	job->segments = xcalloc(job->count, sizeof(*job->segments));
	for (size_t i = 0; i < job->count; i++) {
		job->segments[i].id = xasprintf("command-%zu", i);
		job->segments[i].group = xstrdup("");
		job->segments[i].weight = 1;
		make_key(job, &job->segments[i]);
	}
}

/* What the measured speed depends on: the command's text, and the pods that share the work or,
 * where its size is known, the unit of that. */
static char *make_speed_options(const struct job *job, const char *size_unit)
{
	char hex[SHA256_HEX];

	sha256_hex(job->run, strlen(job->run), hex);
	if (size_unit)
		return xasprintf("%.12s.per-%s", hex, size_unit);
	return xasprintf("%.12s.of%zu", hex, job->count);
}

/* Sets the needs from run, outputs, env and segments. */
static void fill_needs(struct job *job)
{
	job->speed_options = make_speed_options(job, NULL);
	job->needs = (struct job_needs){
		.engine = "command",
		.speed_options = job->speed_options,
		.workers = 1,
		.max_batch = 1,
		.command = true,
		.outputs = (const char *const *)job->outputs,
		.checkpoint_most_bytes = INT64_C(1000) * 1000000,
		.tries = 1,
		.env_names = (const char *const *)job->env,
	};
}

/* Appends a copy of `more` to a NULL-terminated list. Returns the list, which may have moved. */
static char **append_text(char **list, const char *more)
{
	size_t count = 0;

	while (list[count])
		count++;
	list = xrealloc(list, (count + 2) * sizeof(*list));
	list[count] = xstrdup(more);
	list[count + 1] = NULL;
	return list;
}

struct job *command_make(const struct command_want *want)
{
	struct job *job = xcalloc(1, sizeof(*job));

	job->output = xstrdup(want->output);
	job->run = xstrdup(want->run);
	job->outputs = job_texts(want->outputs, "outputs");
	if (want->also)
		job->outputs = append_text(job->outputs, want->also);
	job->env = job_texts(want->env, "env");
	COPY_TEXT(job->commit, want->commit ? want->commit : "");
	make_segments(job, want->pods);
	fill_needs(job);
	return job;
}

/* Refuses a job without outputs unless the config says so: what the command writes is lost with its
 * pod. */
static int check_has_outputs(const struct section *conf, struct err *err)
{
	size_t count = section_count(conf, "outputs");

	for (size_t i = 0; i < count; i++)
		if (is_empty(section_item(conf, "outputs", i)))
			return err_set(err, ERR_CONFIG,
				       "%s: job.outputs: entry %zu is empty; write a pattern, "
				       "like \"out/**\"",
				       section_where(conf, "outputs"), i + 1);
	if (count && section_bool(conf, "no_outputs"))
		return err_set(err, ERR_CONFIG,
			       "%s: job.no_outputs is true, but job.outputs names files to fetch",
			       section_where(conf, "no_outputs"));
	if (count || section_bool(conf, "no_outputs"))
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s: job.outputs %s: everything that the command writes would be lost "
		       "with its pod; name the files to fetch, like [\"out/**\"], or set "
		       "no_outputs = true",
		       section_where(conf, section_has(conf, "outputs") ? "outputs" : NULL),
		       section_has(conf, "outputs") ? "is empty" : "is missing");
}

static int check_run(const struct section *conf, struct err *err)
{
	if (!section_text(conf, "run") || !is_empty(section_text(conf, "run")))
		return 0;
	return err_set(err, ERR_CONFIG, "%s: job.run is empty: which command is to be run?",
		       section_where(conf, "run"));
}

static int check_size(const struct section *conf, struct err *err)
{
	const char *text = section_text(conf, "size"), *of;
	double number;

	if (!text || size_parse(text, &of, &number) != SIZE_NONE)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s: job.size = \"%.*s\": it must be \"bytes of PATTERN\", \"lines of "
		       "PATTERN\" or \"files of PATTERN\" with a path inside the project, or a "
		       "number above 0",
		       section_where(conf, "size"), utf8_fit(text, 60), text);
}

/* job_ops.check_conf: all checks that need nothing but the section. */
static int command_check_conf(const struct section *conf, struct mistakes *m, struct err *err)
{
	static int (*const checks[])(const struct section *conf, struct err *err) = {
		check_run,     check_has_outputs, job_check_outputs,
		job_check_env, job_check_needs,   check_size};

	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		if (checks[i](conf, err) < 0 && mistakes_note(m, NULL, err) < 0)
			return -1;
	return 0;
}

/* Measures the input, and gives each pod an equal share of it. */
static int weigh_segments(struct job *job, const struct job_setup *setup, struct err *err)
{
	const char *text = section_text(setup->conf, "size"), *of;
	double amount;

	if (!text)
		return 0;
	enum size_unit unit = size_parse(text, &of, &amount);
	if (of && size_measure(unit, setup->base_dir, of, &amount, err) < 0)
		return err_wrap(err, "%s: job.size", section_where(setup->conf, "size"));
	for (size_t i = 0; i < job->count; i++)
		job->segments[i].weight = amount / (double)job->count;
	job->needs.size_unit = size_unit_name(unit);
	free(job->speed_options);
	job->needs.speed_options = job->speed_options =
		make_speed_options(job, job->needs.size_unit);
	return 0;
}

/* job_ops.load: notes the section's mistakes in setup->mistakes (NULL: stops at the first), and
 * makes *out only if there is none. */
static int load_job(struct job **out, const struct job_setup *setup, struct err *err)
{
	const struct section *conf = setup->conf;

	if (command_check_conf(conf, setup->mistakes, err) < 0)
		return -1;
	if (!section_text(conf, "run")) {
		err_set(err, ERR_CONFIG, "%s: job.run is missing: which command is to be run?",
			section_where(conf, NULL));
		return err_about(err, "job.run");
	}
	if (setup->pods > PODS_MAX)
		return err_set(err, ERR_CONFIG, "pods must be from 1 to %d", PODS_MAX);
	if (mistakes_end(setup->mistakes, err) < 0)
		return -1;
	struct job *job = command_make(&(struct command_want){.output = setup->output_dir,
							      .run = section_text(conf, "run"),
							      .outputs = conf,
							      .env = conf,
							      .pods = setup->pods,
							      .commit = setup->commit});
	job->setup = section_text(conf, "setup") ? xstrdup(section_text(conf, "setup")) : NULL;
	job->needs.setup = job->setup;
	job->needs.stream = section_bool(conf, "stream");
	job->needs.checkpoint_every_ms = section_int(conf, "checkpoint");
	job->needs.checkpoint_most_bytes = section_int(conf, "checkpoint_max_mb") * 1000000;
	if (weigh_segments(job, setup, err) < 0) {
		command_free(job);
		return -1;
	}
	*out = job;
	return 0;
}

static int command_load(struct job **out, const struct job_setup *setup, struct err *err)
{
	return job_load_noting(out, setup, load_job, err);
}

static struct segment *command_segments(struct job *job, size_t *count)
{
	*count = job->count;
	return job->segments;
}

static const struct job_needs *command_needs(struct job *job)
{
	return &job->needs;
}

static json_t *command_task(struct job *job, size_t index, int attempt)
{
	(void)attempt; /* earlier tries do not change a command */
	return json_pack("{s:s, s:s, s:I, s:I}", "id", job->segments[index].id, "run", job->run,
			 "index", (json_int_t)index, "count", (json_int_t)job->count);
}

/* ---- the output folder ---- */

/* Finds nothing cached, since each run runs the command again; only refuses foreign files that
 * outputs would overwrite. command_recall() finds what a resumed run has done.
 * force: foreign files may be overwritten, but the manifest must still be readable. */
static int command_find_cached(struct job *job, struct segment_result *results, bool force,
			       struct err *err)
{
	CLEANUP(manifest_free) struct manifest m = {0};

	(void)results;
	if (manifest_read(job->output, force, &m, err) < 0)
		return -1;
	return force ? 0
		     : foreign_check(job->output, (const char *const *)job->outputs, &m, NULL, err);
}

/* The index of the segment with this id, most likely `guess`; job->count: there is none. */
static size_t find_segment(const struct job *job, const char *id, size_t guess)
{
	if (guess < job->count && !strcmp(job->segments[guess].id, id))
		return guess;
	for (size_t i = 0; i < job->count; i++)
		if (!strcmp(job->segments[i].id, id))
			return i;
	return job->count;
}

/* *missing: the file of this line was changed or removed. -1: it cannot be read. */
static int check_missing(const struct job *job, const struct manifest *m,
			 const struct manifest_entry *line, bool *missing, struct err *err)
{
	const struct manifest_entry *entry;
	bool absent;

	if (manifest_match(m, job->output, line->file, line->key, &entry, &absent, err) < 0)
		return -1;
	*missing = !entry || strcmp(entry->sha256, line->sha256);
	return 0;
}

static bool is_of_attempt(const struct manifest_entry *line, const char *attempt)
{
	CLEANUP(json_decref) json_t *json = manifest_entry_json(line);

	return !strcmp(jsonx_text(json, "attempt", ""), attempt);
}

/* job_ops.recall: marks as SEGMENT_SAFE the segments of the same run whose files were fetched and
 * are unchanged, by their lines in the manifest; a moved folder has none. A file whose newest line
 * is another run's was overwritten. */
static int command_recall(struct job *job, struct segment_result *results, struct err *err)
{
	CLEANUP(manifest_free) struct manifest m = {0};
	size_t s = 0;

	if (manifest_read(job->output, true, &m, err) < 0)
		return -1;
	bool *has_line = xcalloc(job->count + 1, sizeof(*has_line));
	int status = 0;
	for (size_t i = 0; i < job->count; i++)
		results[i].state = results[i].attempt[0] ? SEGMENT_SAFE : SEGMENT_OPEN;
	for (size_t i = 0, latest = 0; i < m.count && status == 0; i++) {
		const struct manifest_entry *line = m.by_file[i];
		bool missing = false;
		latest = manifest_is_latest(&m, i) ? i : latest;
		s = find_segment(job, line->id, s);
		if (s == job->count || results[s].state != SEGMENT_SAFE ||
		    !is_of_attempt(line, results[s].attempt))
			continue;
		has_line[s] = true;
		if (latest == i)
			status = check_missing(job, &m, line, &missing, err);
		else
			missing = !is_of_attempt(m.by_file[latest], results[s].attempt);
		if (missing)
			results[s] = (struct segment_result){.state = SEGMENT_OPEN};
	}
	for (size_t i = 0; i < job->count; i++)
		if (results[i].state == SEGMENT_SAFE && results[i].sha256[0] && !has_line[i])
			results[i] = (struct segment_result){.state = SEGMENT_OPEN};
	free(has_line);
	return status;
}

/* job_ops.gives_way: whether this run may overwrite the file, as it is absent or the run's own. */
static bool command_gives_way(const struct job *job, const char *name, const char *run,
			      struct err *err)
{
	CLEANUP(manifest_free) struct manifest m = {0};
	CLEANUP(json_decref) json_t *line = NULL;
	const struct manifest_entry *entry;
	bool absent;

	if (manifest_read(job->output, true, &m, err) < 0 ||
	    manifest_match(&m, job->output, name, NULL, &entry, &absent, err) < 0)
		return false;
	line = entry ? manifest_entry_json(entry) : NULL;
	if (absent || (line && !strcmp(jsonx_text(line, "run", ""), run)))
		return true;
	err_set(err, ERR_CONFIG, "is there, and was not made by run %s: move it away first", run);
	return false;
}

/* The manifest's line for a fetched file. New reference. */
static json_t *make_line(const struct job *job, size_t index, const struct segment_result *result)
{
	json_t *line = manifest_line(&job->segments[index], result, result->file, job->commit);

	json_object_set_new(line, "engine", json_string("command"));
	json_object_set_new(line, "run", json_string(result->run));
	manifest_add_result(line, result);
	return line;
}

static int command_record(struct job *job, size_t index, const struct segment_result *results,
			  size_t count, struct err *err)
{
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};

	for (size_t i = 0; i < count; i++)
		if (results[i].file) /* a command's own result is not a file */
			manifest_lines_add(&lines, make_line(job, index, &results[i]));
	return lines.count ? manifest_append(job->output, &lines, err) : 0;
}

/* ---- the end ---- */

/* Whether this line names a file that the segment's run fetched, by any of its attempts. */
static bool is_current(const struct job *job, const struct segment_result *results, size_t index,
		       const struct manifest_entry *e)
{
	if (strcmp(e->id, job->segments[index].id))
		return false;
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);
	return !results[index].attempt[0] ||
	       !strcmp(jsonx_text(line, "attempt", ""), results[index].attempt) ||
	       (results[index].run[0] && !strcmp(jsonx_text(line, "run", ""), results[index].run));
}

static int compare_by_file(const void *a, const void *b)
{
	const struct manifest_entry *x = *(const struct manifest_entry *const *)a,
				    *y = *(const struct manifest_entry *const *)b;

	return natural_order(x->file, y->file);
}

/* The newest line of each file: frame2.png before frame10.png. The caller frees the list. */
static const struct manifest_entry **latest_lines(const struct manifest *m, size_t *count)
{
	const struct manifest_entry **list = xcalloc(m->count + 1, sizeof(*list));

	*count = 0;
	for (size_t i = 0; i < m->count; i++)
		if (manifest_is_latest(m, i))
			list[(*count)++] = m->by_file[i];
	if (*count)
		qsort(list, *count, sizeof(*list), compare_by_file);
	return list;
}

/* Adds this line if its file is still unchanged. -1: the file cannot be read. */
static int add_current(const struct job *job, const struct manifest *m,
		       const struct manifest_entry *latest, const struct segment_result *result,
		       struct manifest_lines *lines, struct err *err)
{
	const struct manifest_entry *entry;
	bool absent;

	if (manifest_match(m, job->output, latest->file, latest->key, &entry, &absent, err) < 0)
		return -1;
	if (entry != latest)
		return 0;
	json_t *line = manifest_entry_json(entry);
	/* lines of this run; a delivery may use a file's name before its line is corrected */
	if (result->attempt[0])
		json_object_del(line, "former");
	manifest_lines_add(lines, line);
	return 0;
}

/* Adds the lines of all files of this run that are unchanged, segment by segment. */
static int add_current_lines(const struct job *job, const struct manifest *m,
			     const struct segment_result *results, struct manifest_lines *lines,
			     struct err *err)
{
	size_t count;
	const struct manifest_entry **latest = latest_lines(m, &count);
	int result = 0;

	for (size_t s = 0; s < job->count && result == 0; s++)
		for (size_t i = 0; i < count && result == 0; i++)
			if (is_current(job, results, s, latest[i]))
				result = add_current(job, m, latest[i], &results[s], lines, err);
	free(latest);
	return result;
}

static void note_results(const struct job *job, const struct segment_result *results, size_t files,
			 struct str *notes)
{
	str_addf(notes, "%zu file%s in %s\n", files, files == 1 ? "" : "s", job->output);
	for (size_t i = 0; i < job->count; i++)
		if (results[i].state == SEGMENT_FAILED) {
			str_addf(notes, "%s: failed: ", job->segments[i].id);
			str_add_printable(notes, results[i].reason, strlen(results[i].reason), 0);
			str_addc(notes, '\n');
		}
}

/* Whether a pattern is "**", which accepts any files, perhaps none. */
static bool accepts_any_files(const struct job *job)
{
	for (char **pattern = job->outputs; *pattern; pattern++)
		if (!strcmp(*pattern, "**"))
			return true;
	return false;
}

/* ERR_JOB: the command succeeded on all pods, but no file matched outputs. The patterns may be
 * wrong, or the command wrote into another folder. */
static int check_some_files(const struct job *job, const struct segment_result *results,
			    size_t files, struct err *err)
{
	if (files || !*job->outputs || accepts_any_files(job))
		return 0;
	for (size_t i = 0; i < job->count; i++)
		if (results[i].state != SEGMENT_SAFE)
			return 0; /* a failed segment has its own message */
	return err_set(err, ERR_JOB,
		       "the command succeeded, but no file of its folder matches outputs "
		       "(%s%s): nothing was fetched",
		       job->outputs[0], job->outputs[1] ? ", ..." : "");
}

static int command_finish(struct job *job, const struct segment_result *results, struct str *notes,
			  struct err *err)
{
	CLEANUP(manifest_free) struct manifest m = {0};
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};

	if (manifest_read(job->output, true, &m, err) < 0 ||
	    add_current_lines(job, &m, results, &lines, err) < 0 ||
	    manifest_rewrite(job->output, &lines, err) < 0)
		return -1;
	note_results(job, results, lines.count, notes);
	return check_some_files(job, results, lines.count, err);
}

const struct job_ops job_command = {
	.abi = JOB_ABI,
	.type = "command",
	.summary = "run a shell command on the pod, in a private copy of the synced tree",
	.options = options,
	.check_conf = command_check_conf,
	.load = command_load,
	.free = command_free,
	.segments = command_segments,
	.needs = command_needs,
	.task = command_task,
	.find_cached = command_find_cached,
	.recall = command_recall,
	.gives_way = command_gives_way,
	.record = command_record,
	.finish = command_finish,
};
