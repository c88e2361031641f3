/* read.c - pods, offers and bills from what Slurm's commands print (22.05 to 26.05) */
#include "impl.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"

enum { FIELDS_MOST = SLURM_FIELDS_MOST, SEPARATOR = SLURM_SEPARATOR, SINFO_FIELDS = 6 };

/* ---- numbers ---- */

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

/* The name that people use for a card or slice of this type, in this partition. "": none is known.
 * A type may be a slice's profile alone, "1g.10gb": the config names its card. */
static void name_gpu(const struct section *conf, const char *type, const char *partition,
		     char gpu[GPU_MAX])
{
	const char *card = untyped_gpu(conf, partition), *text = type[0] ? type : card;
	const struct gpu *known = gpu_find(text);
	char slice[2 * GPU_MAX];

	if (!known && type[0]) {
		format_text(slice, sizeof(slice), "%s %s", card, type);
		known = gpu_find(slice);
	}
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

/* What to know of the reasons for which a job waits, the more particular words first. Where a job's
 * account does not fit its partition Slurm 22.05 gives a sentence in place of AccountNotAllowed.
 * Limits of an account or a QOS are many: AssocMaxWallDurationPerJobLimit, QOSMaxGRESPerJob,
 * QOSMaxCpuPerNode, AssocGrpBillingMinutes. */
static const struct {
	const char *word, *advice;
	bool passes; /* it may start yet */
} reasons[] = {
	{"PartitionTimeLimit", "the partition allows shorter jobs only: lower caps.max_duration",
	 false},
	{"PartitionNodeLimit", "the partition allows no job of one node", false},
	{"PartitionConfig",
	 "the partition does not take such a job: see its limits (scontrol show partition)", false},
	{"BadConstraints", "no node has what providers.slurm.constraint asks for", false},
	{"InvalidAccount", "Slurm does not know the account: see providers.slurm.account", false},
	{"InvalidQOS", "Slurm does not know the QOS: see providers.slurm.qos", false},
	{"AccountNotAllowed", "see providers.slurm.account and partitions", false},
	{"account not permitted", "see providers.slurm.account and partitions", false},
	{"QOSNotAllowed", "see providers.slurm.qos and partitions", false},
	{"QOS not permitted", "see providers.slurm.qos and partitions", false},
	{"WallDurationPerJob",
	 "the account or QOS allows shorter jobs only: lower caps.max_duration", false},
	{"PerJob", "the account or QOS allows smaller jobs only", false},
	{"PerNode", "the account or QOS allows smaller jobs only", false},
	{"QOSMin", "the QOS is for larger jobs: see providers.slurm.qos", false},
	{"RunMinutes", "other jobs of the account or QOS must end first", true},
	{"Minutes", "the budget of the account or QOS is used up", true},
	{"PerUser", "other jobs of yours must end first", true},
	{"AssocGrp", "other jobs of the account must end first", true},
	{"QOSGrp", "other jobs of the QOS must end first", true},
	{"JobHeldAdmin", "an administrator of the cluster holds it back", false},
	{"JobHeldUser", "it is held back: scontrol release lets it go", false},
	{"DependencyNeverSatisfied", "it depends on a job that failed", false},
	{"JobLaunchFailure",
	 "the node could not start it: is volume_dir a folder that login node and compute nodes "
	 "share?",
	 false},
	{"launch_failed_requeued_held", "the node could not start it", false},
};

/* word: accounting adds who cancelled a job, "CANCELLED by 1000". */
static void read_state(const char *word, const char *reason, struct pod_view *view)
{
	const char *advice = NULL;
	size_t len = strcspn(word, " ");
	bool passes = true;

	for (size_t i = 0; i < ARRAY_LEN(reasons) && !advice; i++)
		if (strstr(reason, reasons[i].word)) {
			advice = reasons[i].advice;
			passes = reasons[i].passes;
		}

	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (len == strlen(states[i].word) && !memcmp(word, states[i].word, len)) {
			view->state = states[i].state;
			view->end = states[i].end;
			view->preempted = states[i].preempted;
		}
	format_text(view->detail, sizeof(view->detail), "%.40s%s%.100s%s%s", word,
		    strcmp(reason, "None") && reason[0] ? " " : "",
		    strcmp(reason, "None") ? reason : "", advice ? ": " : "", advice ? advice : "");
	if (view->state == POD_STATE_QUEUED && !passes)
		view->state = POD_STATE_FAILED;
}

/* A job that ended in the queue has times, too, but it never had a node. */
static void read_times(char *const fields[FIELDS_MOST], struct pod_view *view)
{
	bool placed = fields[7][0] && strcmp(fields[7], "(null)") &&
		      strcmp(fields[7], "None assigned") && view->state != POD_STATE_QUEUED;

	view->created_at_s = read_number(fields[4], EPOCH_MOST_S);
	if (placed)
		view->started_at_s = read_number(fields[5], EPOCH_MOST_S);
	if (view->state == POD_STATE_GONE) {
		view->ended_at_s = read_number(fields[6], EPOCH_MOST_S);
		if (!placed)
			view->end = POD_END_QUEUED;
	}
}

/* The GPU among a job's resources, of squeue ("gres:gpu:l40s:1") or of accounting
 * ("billing=11,cpu=1,gres/gpu:l40s=1,gres/gpu=1,node=1"). */
static void read_gpu(const struct section *conf, const char *resources, const char *partition,
		     char gpu[GPU_MAX])
{
	char type[GPU_MAX];
	int count;

	copy_text(gpu, GPU_MAX, GPU_NONE);
	for (const char *item = resources; item; item = strchr(item, ',')) {
		item += *item == ',';
		if (!read_gres(item, type, sizeof(type), &count))
			continue;
		name_gpu(conf, type, partition, gpu);
		if (type[0])
			return;
	}
}

/* Fields: id, name, state, reason, submitted, started, ends, nodes, partition, resources of a node,
 * user, working directory, comment. */
static void read_job(const struct section *conf, char *const fields[FIELDS_MOST],
		     struct pod_view *view)
{
	const char *attempt = fields[1] + strlen(name_prefix), *folder = strrchr(fields[11], '/');

	format_text(view->id, sizeof(view->id), "%.20s.%s", fields[0], attempt);
	COPY_TEXT(view->name, fields[1]);
	/* a site's plug-in may overwrite comments */
	if (!read_marker(fields[12], attempt, &view->marker) && folder)
		(void)read_marker(folder + 1, attempt, &view->marker);
	read_state(fields[2], fields[3], view);
	read_times(fields, view);
	COPY_TEXT(view->region, fields[8]);
	read_gpu(conf, fields[9], fields[8], view->gpu);
	if (view->state == POD_STATE_RUNNING)
		view->reach = REACH_DIAL;
	COPY_TEXT(view->user, fields[10]); /* an sshd of an ordinary user lets in this user alone */
}

/* What accounting puts in front of a job's line: "sacct", then its seconds. Returns the job's line;
 * *seconds is -1 where the line is not from accounting. */
static char *skip_accounted(char *line, int64_t *seconds)
{
	static const char mark[] = {'s', 'a', 'c', 'c', 't', SEPARATOR, '\0'};
	char *end;

	*seconds = -1;
	if (!starts_with(line, mark))
		return line;
	end = strchr(line + strlen(mark), SEPARATOR);
	if (!end)
		return line;
	*end = '\0';
	*seconds = read_number(line + strlen(mark), EPOCH_MOST_S);
	return end + 1;
}

int slurm_read_jobs(const struct section *conf, const char *text, size_t len,
		    struct op_result *result, struct err *err)
{
	const char *at = text, *line, *end = text + len;
	size_t line_len;

	while ((line = bytes_next_line(&at, end, &line_len))) {
		CLEANUP(free_text) char *copy = xstrndup(line, line_len);
		char *fields[FIELDS_MOST];
		int64_t seconds;
		size_t count = slurm_split_line(skip_accounted(copy, &seconds), fields);
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

/* One kind of node, with the whole answer that tells of it. */
struct node_kind {
	const char *partition, *stock;
	int64_t memory_mb;
	const char *text;
	size_t len;
};

/* One kind of GPU (type NULL: none) on one kind of node. The offer's id is what sbatch needs:
 * "PARTITION GRES". */
static void add_offer(const struct op *op, const struct node_kind *node, const char *type, int most,
		      struct op_result *result)
{
	char gpu[GPU_MAX] = GPU_NONE, id[sizeof(((struct offer *)0)->id)];
	const char *partition = node->partition;

	if (type)
		name_gpu(op->provider->section, type, partition, gpu);
	for (int count = 1; count <= most && gpu[0]; count++) {
		struct slurm_kind kind = {partition, type, gpu, count, node->memory_mb};
		if (!type)
			format_text(id, sizeof(id), "%.60s none", partition);
		else
			format_text(id, sizeof(id), "%.60s gpu%s%s:%d", partition,
				    type[0] ? ":" : "", type, count);
		if (!is_wished(op->want, gpu, count) || merge_stock(result, id, node->stock))
			continue;
		struct offer *offer = child_offer(op, gpu, count, 0, 0, result);
		if (!offer)
			continue;
		offer->price_microusd_h =
			slurm_price(op, &kind, node->text, node->len, &result->text);
		COPY_TEXT(offer->id, id);
		COPY_TEXT(offer->region, partition);
		COPY_TEXT(offer->stock, node->stock);
		offer->spot = op->want->offers.spot;
	}
}

/* Fields: partition (a star marks the default), resources, state, time limit, availability, MB of
 * memory. node: with the whole answer. */
static void read_partition(const struct op *op, char *const fields[FIELDS_MOST],
			   struct node_kind *node, struct op_result *result)
{
	size_t len = strlen(fields[0]);
	bool is_default = len && fields[0][len - 1] == '*';
	char type[GPU_MAX];
	int count;

	if (is_default)
		fields[0][len - 1] = '\0';
	node->partition = fields[0];
	node->stock = stock_of(fields[2]);
	node->memory_mb = atoll(fields[5]); /* "64000+": the least of several nodes */
	if (!node->stock || strcmp(fields[4], "up") || strchr(fields[0], ' ') ||
	    !is_wanted_partition(op->provider->section, fields[0], is_default,
				 op->want->offers.spot))
		return;
	for (const char *item = fields[1]; item; item = strchr(item, ',')) {
		item += *item == ',';
		if (read_gres(item, type, sizeof(type), &count))
			add_offer(op, node, type, count, result);
	}
	add_offer(op, node, NULL, 1, result);
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
		struct node_kind node = {.text = text, .len = len};
		if (slurm_split_line(copy, fields) == SINFO_FIELDS)
			read_partition(op, fields, &node, result);
	}
	note_missing(op, result);
	return 0;
}

/* ---- bills ---- */

/* The units among a job's resources, "billing=11,cpu=1,node=1". 0: there are none. */
static int64_t read_units(const char *resources)
{
	static const char name[] = "billing=";

	for (const char *item = resources; item; item = strchr(item, ',')) {
		item += *item == ',';
		if (starts_with(item, name))
			return MIN(MAX(atoll(item + strlen(name)), 0LL),
				   (long long)SLURM_UNITS_MOST);
	}
	return 0;
}

/* Reads a line of accounting into *seconds and *units. False: there is none. */
static bool read_accounted(const char *text, size_t len, int64_t *seconds, int64_t *units)
{
	CLEANUP(free_text) char *copy = NULL;
	char *fields[SLURM_FIELDS_MOST];

	/* "sacct", seconds, then the fields of squeue: the last of them stay in one */
	if (slurm_find_line(text, len, "sacct", NULL, &copy, fields) < SLURM_FIELDS_MOST)
		return false;
	*seconds = MIN(MAX(atoll(fields[1]), 0LL), (long long)EPOCH_MOST_S);
	*units = read_units(fields[11]);
	return true;
}

/* The seconds from the job's start to its end, as squeue tells them. -1: it has not ended. */
static int64_t seconds_in_squeue(const struct op_result *jobs)
{
	const struct pod_view *pod = jobs->pods;

	if (!jobs->pod_count || !pod->ended_at_s)
		return -1;
	return pod->started_at_s ? MAX(pod->ended_at_s - pod->started_at_s, INT64_C(0)) : 0;
}

int slurm_read_bill(const struct op *op, const char *text, size_t len, struct op_result *result,
		    struct err *err)
{
	const struct section *conf = op->provider->section;
	struct op_result jobs = {0};
	int64_t seconds = -1, units = 0;

	if (!read_accounted(text, len, &seconds, &units)) {
		if (slurm_read_jobs(conf, text, len, &jobs, err) < 0) {
			op_result_free(&jobs);
			return -1;
		}
		seconds = seconds_in_squeue(&jobs);
		op_result_free(&jobs);
	}
	if (seconds < 0)
		return err_set(err, ERR_NOT_FOUND, "Slurm has no record of this pod's end");
	result->billing.billed_ms = seconds * 1000;
	result->billing.reported = true;
	if (!provider_price_of(conf, "price_per_gpu_hour", op->want->bill.gpu))
		result->billing.cost_microusd =
			money_for(slurm_price_of_units(conf, units), seconds * 1000);
	return 0;
}
