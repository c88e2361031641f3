/* read.c - pods, offers and bills from what Slurm's commands print (22.05 to 26.05) */
#include "impl.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"

enum { FIELDS_MOST = 13, SEPARATOR = '\037' };

/* ---- lines and fields ---- */

int slurm_find_answer(const struct reply *reply, const char **text, size_t *len)
{
	static const char begin[] = "burst: begin", end[] = "burst: end ";
	const char *at = str_text(&reply->body), *line, *start = NULL;
	size_t line_len;

	while ((line = str_next_line(&at, &line_len))) {
		if (line_len == strlen(begin) && !memcmp(line, begin, line_len)) {
			start = line + line_len + 1;
		} else if (start && line_len > strlen(end) && !memcmp(line, end, strlen(end))) {
			*text = start;
			*len = (size_t)(line - start);
			return atoi(line + strlen(end));
		}
	}
	return -1;
}

/* Splits a line in place. The last field keeps what is left. Returns how many there are. */
static size_t split_line(char *line, char *fields[FIELDS_MOST])
{
	size_t count = 0;

	while (line && count < FIELDS_MOST) {
		char *next = count + 1 < FIELDS_MOST ? strchr(line, SEPARATOR) : NULL;
		if (next)
			*next++ = '\0';
		fields[count++] = line;
		line = next;
	}
	return count;
}

/* 0 for anything that is no number, such as "N/A". */
static int64_t read_number(const char *text, int64_t most)
{
	char *end;
	long long number = strtoll(text, &end, 10);

	return end == text || *end || number < 0 ? 0 : MIN(number, most);
}

/* ---- names and markers ---- */

static const char name_prefix[] = "burst-";

static bool is_pod_name(const char *name)
{
	size_t prefix = strlen(name_prefix);

	return starts_with(name, name_prefix) && strlen(name) == prefix + ATTEMPT_LEN &&
	       starts_with_hex(name + prefix, ATTEMPT_LEN);
}

bool slurm_split_id(const char *id, char job[SLURM_JOB_MAX], char name[POD_NAME_MAX])
{
	size_t digits = strspn(id, "0123456789");
	char wanted[POD_NAME_MAX];

	if (!digits || digits >= SLURM_JOB_MAX || id[digits] != '.')
		return false;
	format_text(wanted, sizeof(wanted), "%s%.40s", name_prefix, id + digits + 1);
	if (!is_pod_name(wanted))
		return false;
	if (job)
		format_text(job, SLURM_JOB_MAX, "%.*s", (int)digits, id);
	if (name)
		copy_text(name, POD_NAME_MAX, wanted);
	return true;
}

/* "burst1.MACHINE.RUN.ATTEMPT.HARDEND": a job's comment, and the last part of its folder's name. */
static bool read_marker(const char *text, const char *attempt, struct marker *out)
{
	char copy[128], *parts[5], *save = NULL;
	size_t count = 0;

	if (!starts_with(text, "burst1.") || strlen(text) >= sizeof(copy))
		return false;
	copy_text(copy, sizeof(copy), text);
	for (char *part = strtok_r(copy, ".", &save); part; part = strtok_r(NULL, ".", &save)) {
		if (count == ARRAY_LEN(parts))
			return false;
		parts[count++] = part;
	}
	return count == ARRAY_LEN(parts) && !strcmp(parts[3], attempt) &&
	       marker_read(out, parts[1], parts[2], parts[3], parts[4]);
}

/* ---- GPUs ---- */

/* The GPU of a partition whose GPUs have no type, by providers.slurm.gpus ("gpu=A100"). */
static const char *untyped_gpu(const struct section *conf, const char *partition)
{
	size_t len = strlen(partition);

	for (size_t i = 0; i < section_count(conf, "gpus"); i++) {
		const char *item = section_item(conf, "gpus", i);
		if (!strncmp(item, partition, len) && item[len] == '=')
			return item + len + 1;
	}
	return "";
}

/* One item of a list of generic resources: "gpu:a40:2(S:0-1)", "gpu:8", in newer versions also
 * "gres/gpu:a40=2". Returns false if it is no GPU. type: "" without one. */
static bool read_gres(const char *item, char *type, size_t room, int *count)
{
	const char *at = strstr(item, "gpu"), *comma = strchr(item, ','), *colon;

	if (!at || (comma && at > comma))
		return false;
	at += strlen("gpu");
	*count = 1;
	*type = '\0';
	if (*at != ':' && *at != '=')
		return *at == '\0' || *at == ',' || *at == '(';
	at++;
	if (!isdigit((unsigned char)*at) || strspn(at, "0123456789") != strcspn(at, ",(:=")) {
		size_t len = strcspn(at, ",(:=");
		if (len >= room)
			return false;
		memcpy(type, at, len);
		type[len] = '\0';
		colon = at + len;
		if (*colon != ':' && *colon != '=')
			return true;
		at = colon + 1;
	}
	*count = atoi(at);
	return *count > 0 && *count <= 64;
}

/* The name that people use for a card of this type, in this partition. "": none is known. */
static void name_gpu(const struct section *conf, const char *type, const char *partition,
		     char gpu[GPU_MAX])
{
	const char *text = type[0] ? type : untyped_gpu(conf, partition);
	const struct gpu *known = gpu_find(text);

	copy_text(gpu, GPU_MAX, known ? known->name : text);
}

/* ---- jobs ---- */

static const struct {
	const char *word;
	enum pod_state state;
	enum pod_end end;
	bool preempted;
} states[] = {
	{"PENDING", POD_STATE_QUEUED, POD_END_UNKNOWN, false},
	{"REQUEUED", POD_STATE_QUEUED, POD_END_UNKNOWN, false},
	{"REQUEUE_FED", POD_STATE_QUEUED, POD_END_UNKNOWN, false},
	{"REQUEUE_HOLD", POD_STATE_FAILED, POD_END_UNKNOWN, false},
	{"SPECIAL_EXIT", POD_STATE_FAILED, POD_END_UNKNOWN, false},
	{"RESV_DEL_HOLD", POD_STATE_FAILED, POD_END_UNKNOWN, false},
	{"CONFIGURING", POD_STATE_CREATING, POD_END_UNKNOWN, false},
	{"RUNNING", POD_STATE_RUNNING, POD_END_UNKNOWN, false},
	{"RESIZING", POD_STATE_RUNNING, POD_END_UNKNOWN, false},
	{"SIGNALING", POD_STATE_RUNNING, POD_END_UNKNOWN, false},
	/* these hold the node, which may bill */
	{"COMPLETING", POD_STATE_STOPPED, POD_END_UNKNOWN, false},
	{"SUSPENDED", POD_STATE_STOPPED, POD_END_UNKNOWN, false},
	{"STOPPED", POD_STATE_STOPPED, POD_END_UNKNOWN, false},
	{"STAGE_OUT", POD_STATE_STOPPED, POD_END_UNKNOWN, false},
	{"COMPLETED", POD_STATE_GONE, POD_END_SCRIPT, false},
	{"FAILED", POD_STATE_GONE, POD_END_SCRIPT, false},
	{"CANCELLED", POD_STATE_GONE, POD_END_OUTSIDE, false},
	{"REVOKED", POD_STATE_GONE, POD_END_OUTSIDE, false},
	{"PREEMPTED", POD_STATE_GONE, POD_END_OUTSIDE, true},
	{"TIMEOUT", POD_STATE_GONE, POD_END_LIFETIME, false},
	{"DEADLINE", POD_STATE_GONE, POD_END_LIFETIME, false},
	{"OUT_OF_MEMORY", POD_STATE_GONE, POD_END_MEMORY, false},
	{"NODE_FAIL", POD_STATE_GONE, POD_END_VENDOR, false},
	{"BOOT_FAIL", POD_STATE_GONE, POD_END_VENDOR, false},
	{"LAUNCH_FAILED", POD_STATE_GONE, POD_END_VENDOR, false},
	{"RECONFIG_FAIL", POD_STATE_GONE, POD_END_VENDOR, false},
};

/* Reasons for which a job waits for ever. */
static const struct {
	const char *reason, *advice;
} hopeless[] = {
	{"PartitionTimeLimit", "the partition allows shorter jobs only: lower caps.max_duration"},
	{"PartitionNodeLimit", "the partition allows no job of one node"},
	{"PartitionConfig", "the partition does not take such a job: see its limits (scontrol show "
			    "partition)"},
	{"BadConstraints", "no node has what providers.slurm.constraint asks for"},
	{"InvalidAccount", "Slurm does not know the account: see providers.slurm.account"},
	{"InvalidQOS", "Slurm does not know the QOS: see providers.slurm.qos"},
	{"AccountNotAllowed", "the partition does not take jobs of the account: see "
			      "providers.slurm.account"},
	{"QOSNotAllowed", "the partition does not take jobs of the QOS: see providers.slurm.qos"},
	{"JobHeldAdmin", "an administrator of the cluster holds it back"},
	{"JobHeldUser", "it is held back: scontrol release lets it go"},
	{"DependencyNeverSatisfied", "it depends on a job that failed"},
	{"JobLaunchFailure", "the node could not start it: is volume_dir a folder that login node "
			     "and compute nodes share?"},
	{"launch_failed_requeued_held", "the node could not start it"},
};

/* What the user can do about a job that waits for this reason for ever; NULL: it may start yet. */
static const char *hopeless_advice(const char *reason)
{
	for (size_t i = 0; i < ARRAY_LEN(hopeless); i++)
		if (!strcmp(reason, hopeless[i].reason))
			return hopeless[i].advice;
	return NULL;
}

static void read_state(const char *word, const char *reason, struct pod_view *view)
{
	const char *advice = hopeless_advice(reason);

	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (!strcmp(word, states[i].word)) {
			view->state = states[i].state;
			view->end = states[i].end;
			view->preempted = states[i].preempted;
		}
	format_text(view->detail, sizeof(view->detail), "%.40s%s%.60s%s%s", word,
		    strcmp(reason, "None") && reason[0] ? " " : "",
		    strcmp(reason, "None") ? reason : "", advice ? ": " : "", advice ? advice : "");
	if (view->state == POD_STATE_QUEUED && advice)
		view->state = POD_STATE_FAILED;
}

/* A job that ended in the queue has times, too, but it never had a node. */
static void read_times(char *const fields[FIELDS_MOST], struct pod_view *view)
{
	bool placed =
		fields[7][0] && strcmp(fields[7], "(null)") && view->state != POD_STATE_QUEUED;

	view->created_at_s = read_number(fields[4], EPOCH_MOST_S);
	if (placed)
		view->started_at_s = read_number(fields[5], EPOCH_MOST_S);
	if (view->state == POD_STATE_GONE) {
		view->ended_at_s = read_number(fields[6], EPOCH_MOST_S);
		if (!placed)
			view->end = POD_END_QUEUED;
	}
}

/* Fields: id, name, state, reason, submitted, started, ends, nodes, partition, resources of a node,
 * user, working directory, comment. */
static void read_job(const struct section *conf, char *const fields[FIELDS_MOST],
		     struct pod_view *view)
{
	const char *attempt = fields[1] + strlen(name_prefix), *folder = strrchr(fields[11], '/');
	char type[GPU_MAX];
	int count;

	format_text(view->id, sizeof(view->id), "%.20s.%s", fields[0], attempt);
	COPY_TEXT(view->name, fields[1]);
	/* a site's plug-in may overwrite comments */
	if (!read_marker(fields[12], attempt, &view->marker) && folder)
		(void)read_marker(folder + 1, attempt, &view->marker);
	read_state(fields[2], fields[3], view);
	read_times(fields, view);
	COPY_TEXT(view->region, fields[8]);
	if (read_gres(fields[9], type, sizeof(type), &count))
		name_gpu(conf, type, fields[8], view->gpu);
	else
		COPY_TEXT(view->gpu, GPU_NONE);
	if (view->state == POD_STATE_RUNNING)
		view->reach = REACH_DIAL;
	COPY_TEXT(view->user, fields[10]); /* an sshd of an ordinary user lets in this user alone */
}

int slurm_read_jobs(const struct section *conf, const char *text, size_t len,
		    struct op_result *result, struct err *err)
{
	const char *at = text, *line, *end = text + len;
	size_t line_len;

	while ((line = bytes_next_line(&at, end, &line_len))) {
		CLEANUP(free_text) char *copy = xstrndup(line, line_len);
		char *fields[FIELDS_MOST];
		size_t count = split_line(copy, fields);
		/* other jobs, and further lines of their comments */
		if (count < 2 || !is_pod_name(fields[1]))
			continue;
		if (count != FIELDS_MOST || !read_number(fields[0], INT64_MAX))
			return err_set(err, ERR_BUG, "squeue: cannot read its line about %s",
				       fields[1]);
		read_job(conf, fields, op_result_add_pod(result));
	}
	return 0;
}

/* ---- offers ---- */

/* Whether a node in this state will take jobs, and how soon. NULL: it will not. */
static const char *stock_of(const char *state)
{
	static const char *const out[] = {"down", "drain", "drng",       "fail",    "maint",
					  "unk",  "inval", "power_down", "not_resp"};

	for (size_t i = 0; i < ARRAY_LEN(out); i++)
		if (starts_with(state, out[i]))
			return NULL;
	return starts_with(state, "idle") ? "high" : starts_with(state, "mix") ? "low" : "";
}

static bool is_wanted_partition(const struct section *conf, const char *name, bool is_default,
				bool spot)
{
	const char *spot_partition = section_text(conf, "spot_partition");

	if (spot && spot_partition)
		return !strcmp(name, spot_partition);
	return section_count(conf, "partitions") ? section_has_item(conf, "partitions", name)
						 : is_default;
}

static int64_t price_of(const struct section *conf, const char *gpu)
{
	return provider_price_of(conf, "price_per_gpu_hour", gpu);
}

/* The better stock of one kind of node is that of all. */
static bool merge_stock(struct op_result *result, const char *id, const char *stock)
{
	for (size_t i = 0; i < result->offer_count; i++) {
		struct offer *offer = &result->offers[i];
		if (strcmp(offer->id, id))
			continue;
		if (!strcmp(stock, "high") || !offer->stock[0])
			COPY_TEXT(offer->stock, stock);
		return true;
	}
	return false;
}

/* Whether the job wishes for so many of these. Several in one pod must be wished for, and a job for
 * pods without a GPU gets none, though it could run beside one: others of the cluster want it. */
static bool is_wished(const struct op_want *want, const char *gpu, int count)
{
	const char *const *wishes = want->offers.gpus;
	int wish = child_wish(want, gpu, count);

	if (wish < 0 || !wishes || !wishes[0])
		return wish == 0 && count == 1;
	return gpu_is_none(wishes[wish]) == gpu_is_none(gpu);
}

/* One kind of GPU (type NULL: none) on one kind of node. The offer's id is what sbatch needs:
 * "PARTITION GRES". */
static void add_offer(const struct op *op, const char *partition, const char *type, int most,
		      const char *stock, struct op_result *result)
{
	const struct section *conf = op->provider->section;
	bool spot = op->want->offers.spot;
	char gpu[GPU_MAX] = GPU_NONE, id[sizeof(((struct offer *)0)->id)];

	if (type)
		name_gpu(conf, type, partition, gpu);
	for (int count = 1; count <= most && gpu[0]; count++) {
		if (!type)
			format_text(id, sizeof(id), "%.60s none", partition);
		else
			format_text(id, sizeof(id), "%.60s gpu%s%s:%d", partition,
				    type[0] ? ":" : "", type, count);
		if (!is_wished(op->want, gpu, count) || merge_stock(result, id, stock))
			continue;
		struct offer *offer =
			child_offer(op, gpu, count, 0, price_of(conf, gpu) * count, result);
		if (!offer)
			continue;
		COPY_TEXT(offer->id, id);
		COPY_TEXT(offer->region, partition);
		COPY_TEXT(offer->stock, stock);
		offer->spot = spot;
	}
}

/* Fields: partition (a star marks the default), resources, state, time limit, availability. */
static void read_partition(const struct op *op, char *const fields[FIELDS_MOST],
			   struct op_result *result)
{
	size_t len = strlen(fields[0]);
	bool is_default = len && fields[0][len - 1] == '*';
	const char *stock = stock_of(fields[2]);
	char type[GPU_MAX];
	int count;

	if (is_default)
		fields[0][len - 1] = '\0';
	if (!stock || strcmp(fields[4], "up") || strchr(fields[0], ' ') ||
	    !is_wanted_partition(op->provider->section, fields[0], is_default,
				 op->want->offers.spot))
		return;
	for (const char *item = fields[1]; item; item = strchr(item, ',')) {
		item += *item == ',';
		if (read_gres(item, type, sizeof(type), &count))
			add_offer(op, fields[0], type, count, stock, result);
	}
	add_offer(op, fields[0], NULL, 1, stock, result);
}

/* A partition in the config that the cluster lacks would look like one without a free node. */
static int check_partition_exists(const struct section *conf, const char *key, const char *name,
				  const char *text, size_t len, struct err *err)
{
	const char *at = text, *line, *end = text + len;
	size_t line_len, name_len = strlen(name);

	while ((line = bytes_next_line(&at, end, &line_len)))
		if (line_len > name_len && !memcmp(line, name, name_len) &&
		    (line[name_len] == '*' || line[name_len] == SEPARATOR))
			return 0;
	return err_set(err, ERR_CONFIG,
		       "%s: providers.slurm.%s: the cluster has no partition \"%s\"",
		       section_where(conf, key), key, name);
}

/* A line for people about each wish that no offer fulfils. */
static void note_missing(const struct op *op, struct op_result *result)
{
	const char *const *wishes = op->want->offers.gpus;

	for (int i = 0; wishes && wishes[i]; i++) {
		bool offered = false;
		for (size_t k = 0; k < result->offer_count; k++)
			offered = offered || result->offers[k].wish == i;
		if (!offered && !gpu_is_none(wishes[i]))
			str_addf(&result->text,
				 "%.60s is in none of the partitions that pods may run in (see "
				 "providers.slurm.partitions and gpus): skipped\n",
				 wishes[i]);
	}
}

int slurm_read_offers(const struct op *op, const char *text, size_t len, struct op_result *result,
		      struct err *err)
{
	const struct section *conf = op->provider->section;
	const char *at = text, *line, *end = text + len,
		   *spot = section_text(conf, "spot_partition");
	size_t line_len;

	for (size_t i = 0; i < section_count(conf, "partitions"); i++)
		if (check_partition_exists(conf, "partitions", section_item(conf, "partitions", i),
					   text, len, err) < 0)
			return -1;
	if (spot && check_partition_exists(conf, "spot_partition", spot, text, len, err) < 0)
		return -1;
	while ((line = bytes_next_line(&at, end, &line_len))) {
		CLEANUP(free_text) char *copy = xstrndup(line, line_len);
		char *fields[FIELDS_MOST];
		if (split_line(copy, fields) >= 5)
			read_partition(op, fields, result);
	}
	note_missing(op, result);
	return 0;
}

/* ---- bills ---- */

/* The seconds in a line of sacct, "sacct|JOB|STATE|SECONDS". -1: there is none. */
static int64_t read_accounted_s(const char *text, size_t len)
{
	const char *at = text, *line, *end = text + len;
	size_t line_len;

	while ((line = bytes_next_line(&at, end, &line_len))) {
		CLEANUP(free_text) char *copy = xstrndup(line, line_len);
		const char *seconds = strrchr(copy, '|');
		if (starts_with(copy, "sacct|") && isdigit((unsigned char)seconds[1]))
			return read_number(seconds + 1, EPOCH_MOST_S);
	}
	return -1;
}

int slurm_read_bill(const struct op *op, const char *text, size_t len, struct op_result *result,
		    struct err *err)
{
	struct op_result jobs = {0};
	int64_t seconds = read_accounted_s(text, len);

	if (slurm_read_jobs(op->provider->section, text, len, &jobs, err) < 0) {
		op_result_free(&jobs);
		return -1;
	}
	if (seconds < 0 && jobs.pod_count && jobs.pods[0].ended_at_s)
		seconds = jobs.pods[0].started_at_s
				  ? MAX(jobs.pods[0].ended_at_s - jobs.pods[0].started_at_s, 0)
				  : 0;
	op_result_free(&jobs);
	if (seconds < 0)
		return err_set(err, ERR_NOT_FOUND, "Slurm has no record of this pod's end");
	result->billing.billed_ms = seconds * 1000;
	result->billing.reported = true;
	return 0;
}
