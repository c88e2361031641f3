/* slurm.c - the Slurm provider: its keys, operations, and what the words of Slurm and ssh mean */
#include "slurm.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/incbin.h"
#include "base/path.h"
#include "impl.h"

enum {
	/* of what is staged the size alone is needed, which comes with the blocks */
	STAGE_BLOCK_BYTES = 8 << 20,
	SMALL_MS = 60000, /* child.c gives questions at most this */
	LIMIT_LEAST_MS = 5000,
	LIMIT_MOST_MS = 600000,
};

/* ---- keys ---- */

static const struct option_spec options[] = {
	{"login", OPTION_TEXT, OPTION_USER_ONLY, NULL,
	 "login node, as ssh reaches it; absent: this machine is one"},
	{"partitions", OPTION_TEXTS, 0, NULL,
	 "partitions that pods may run in; absent: the cluster's default"},
	{"account", OPTION_TEXT, 0, NULL, "account that jobs are charged to"},
	{"qos", OPTION_TEXT, 0, NULL, "quality of service of the jobs"},
	{"constraint", OPTION_TEXT, 0, NULL, "features that the node must have"},
	{"gpus", OPTION_TEXTS, 0, NULL,
	 "GPUs of partitions where Slurm does not name them, or slices alone, as in "
	 "[\"gpu=A100\"]"},
	{"price_per_gpu_hour", OPTION_TEXTS, 0, NULL,
	 "what an hour of a GPU costs you, as in [\"A100=1.20\"]"},
	{"price_per_billing_hour", OPTION_MONEY, OPTION_USER_ONLY, NULL,
	 "what an hour of a billing unit of Slurm costs you; for GPUs without price_per_gpu_hour"},
	{"spot_partition", OPTION_TEXT, 0, NULL, "partition for spot pods, which it may preempt"},
	{"spot_qos", OPTION_TEXT, 0, NULL, "quality of service of spot pods"},
	{"volume_dir", OPTION_TEXT, OPTION_USER_ONLY, "~/.local/share/burst",
	 "folder that login node and compute nodes share, for volumes"},
	{"answer_limit", OPTION_DURATION, OPTION_USER_ONLY, "60s",
	 "how long the login node may take for an answer"},
	{"sbatch_options", OPTION_TEXTS, OPTION_USER_ONLY, NULL,
	 "more options of sbatch, as in [\"--exclude=node7\"]"},
	{NULL},
};

static int check_login(const struct section *s, const char *group, const char *key, struct err *err)
{
	const char *login = section_text(s, key);

	return login && (!login[0] || login[0] == '-' || strpbrk(login, " \t\n"))
		       ? provider_bad_value(s, group, key,
					    "a host that ssh knows, like \"me@login\"", err)
		       : 0;
}

static int check_volume_dir(const struct section *s, const char *group, const char *key,
			    struct err *err)
{
	const char *dir = section_text(s, key);

	/* sbatch replaces % in names of files */
	return (dir[0] != '/' && !starts_with(dir, "~/")) || strpbrk(dir, "%\n")
		       ? provider_bad_value(s, group, key,
					    "a path that begins with / or ~/, without %", err)
		       : 0;
}

/* "No price" is the key's absence: 0 would be a price, and caps would bound nothing. */
static int check_unit_price(const struct section *s, const char *group, const char *key,
			    struct err *err)
{
	return section_has(s, key) && section_int(s, key) <= 0
		       ? err_set(err, ERR_CONFIG,
				 "%s: %s.%s must be more than 0: leave it out if no price is known",
				 section_where(s, key), group, key)
		       : 0;
}

static int check_answer_limit(const struct section *s, const char *group, const char *key,
			      struct err *err)
{
	int64_t ms = section_int(s, key);

	return ms < LIMIT_LEAST_MS || ms > LIMIT_MOST_MS
		       ? err_set(err, ERR_CONFIG, "%s: %s.%s must be from 5s to 10m",
				 section_where(s, key), group, key)
		       : 0;
}

/* burst sets these: they name, bound and place a pod. */
static const char *const own_options[] = {
	"job-name",
	"comment",
	"requeue",
	"no-requeue",
	"nodes",
	"ntasks",
	"time",
	"time-min",
	"begin",
	"deadline",
	"partition",
	"account",
	"qos",
	"constraint",
	"gres",
	"gpus",
	"cpus-per-task",
	"mem",
	"output",
	"error",
	"input",
	"open-mode",
	"chdir",
	"array",
	"signal",
	"parsable",
	"wrap",
	"wait",
	"hold",
	"export",
	"export-file",
	"dependency",
	"clusters",
	"quiet",
	"test-only",
	"gpus-per-node",
	"ntasks-per-node",
	"uid",
	"gid",
	"get-user-env",
	"help",
	"version",
	"usage",
};

static int check_sbatch_options(const struct section *s, const char *group, const char *key,
				struct err *err)
{
	for (size_t i = 0; i < section_count(s, key); i++) {
		const char *item = section_item(s, key, i);
		size_t len = starts_with(item, "--") ? strcspn(item + 2, "=") : 0;
		if (!len || strpbrk(item, "\n"))
			return err_set(err, ERR_CONFIG,
				       "%s: %s.%s: \"%s\" is not like \"--exclude=node7\"",
				       section_where(s, key), group, key, item);
		/* sbatch accepts unambiguous beginnings of names, too */
		for (size_t k = 0; k < ARRAY_LEN(own_options); k++)
			if (!strncmp(own_options[k], item + 2, len))
				return err_set(err, ERR_CONFIG, "%s: %s.%s: burst itself sets --%s",
					       section_where(s, key), group, key, own_options[k]);
	}
	return 0;
}

static int check_gpus(const struct section *s, const char *group, const char *key, struct err *err)
{
	for (size_t i = 0; i < section_count(s, key); i++) {
		const char *item = section_item(s, key, i), *equals = strchr(item, '=');
		if (!equals || equals == item || !equals[1])
			return err_set(err, ERR_CONFIG,
				       "%s: %s.%s: \"%s\" is not like \"PARTITION=A100\"",
				       section_where(s, key), group, key, item);
	}
	return 0;
}

static int slurm_check_conf(const struct section *s, struct mistakes *m, struct err *err)
{
	static const struct key_check checks[] = {
		{"login", check_login},
		{"gpus", check_gpus},
		{"price_per_gpu_hour", provider_check_prices},
		{"price_per_billing_hour", check_unit_price},
		{"answer_limit", check_answer_limit},
		{"volume_dir", check_volume_dir},
		{"sbatch_options", check_sbatch_options},
		{NULL, NULL},
	};

	return provider_check_keys(checks, s, "providers.slurm", m, err);
}

static int check_spot(const struct section *s, const struct op_want *want, struct err *err)
{
	if (!want->offers.spot || section_text(s, "spot_partition") || section_text(s, "spot_qos"))
		return 0;
	err_set(err, ERR_CONFIG,
		"spot = true: name the preemptable partition or QOS in "
		"providers.slurm.spot_partition "
		"or providers.slurm.spot_qos");
	return err_about(err, "spot");
}

static int slurm_check_wishes(const struct section *s, const struct op_want *want,
			      struct mistakes *m, struct err *err)
{
	static want_check *const checks[] = {check_spot, NULL};

	return provider_judge_wishes(checks, s, want, m, err);
}

/* ---- failures ---- */

/* The more particular text comes first. */
static const struct child_word words[] = {
	/* ssh */
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", ERR_UNTRUSTED,
	 "the login node's host key is not the one in known_hosts"},
	{"Host key verification failed", ERR_UNTRUSTED,
	 "run ssh to the login node once by hand, and compare its key"},
	{"Permission denied (", ERR_CREDENTIALS,
	 "ssh must log in without questions: load a key, or share an open connection "
	 "(ControlMaster in ~/.ssh/config)"},
	{"Could not resolve hostname", ERR_CONFIG, "see providers.slurm.login"},
	{"Connection refused", ERR_NETWORK, NULL},
	{"Connection timed out", ERR_NETWORK, NULL},
	{"No route to host", ERR_NETWORK, NULL},
	{"Connection closed by", ERR_NETWORK, NULL},
	/* our own program */
	{"burst: no volume of this name", ERR_NOT_FOUND, NULL},
	{"burst: no such f", ERR_NOT_FOUND, NULL},
	{"a link is in the way", ERR_REFUSED, NULL},
	{"File exists", ERR_AMBIGUOUS, "an earlier submit of this pod may be under way"},
	{"No space left on device", ERR_REFUSED, "make room in providers.slurm.volume_dir"},
	{"Disk quota exceeded", ERR_REFUSED, "make room in providers.slurm.volume_dir"},
	/* Slurm */
	{"Socket timed out", ERR_AMBIGUOUS, NULL},
	{"Unable to contact slurm controller", ERR_TRANSIENT, NULL},
	{"Could not establish a configuration source", ERR_NO_ACCOUNT,
	 "this is no login node of a Slurm cluster: see providers.slurm.login"},
	{"Invalid job id specified", ERR_NOT_FOUND, NULL},
	{"Invalid partition name", ERR_REFUSED, "see providers.slurm.partitions"},
	{"Invalid account", ERR_REFUSED, "see providers.slurm.account and partitions"},
	{"Invalid qos", ERR_REFUSED, "see providers.slurm.qos"},
	{"Invalid feature specification", ERR_REFUSED, "see providers.slurm.constraint"},
	{"Requested node configuration is not available", ERR_REFUSED,
	 "no node has this GPU, memory or number of cores"},
	{"Invalid generic resource", ERR_REFUSED, "no node has this GPU"},
	{"violates accounting/QOS policy", ERR_NO_CAPACITY, NULL},
	{"sbatch: unrecognized option", ERR_CONFIG, "see providers.slurm.sbatch_options"},
	{"sbatch: option", ERR_CONFIG, "see providers.slurm.sbatch_options"},
	{"not found", ERR_NO_ACCOUNT, "Slurm's commands are not in PATH there"},
	{NULL},
};

/* ---- operations ---- */

static enum op_next refuse(const struct op *op, struct err *err)
{
	err_set(err, ERR_BUG, "slurm: no such operation: %s", child_verb(op->kind));
	return OP_FAILED;
}

/* No job can have this id. */
static enum op_next answer_without_pod(const struct op *op, struct op_result *result)
{
	result->release = RELEASE_ABSENT;
	if (op->kind == OP_INSPECT) {
		struct pod_view *pod = op_result_add_pod(result);
		COPY_TEXT(pod->id, op->want->id);
		pod->state = POD_STATE_GONE;
		COPY_TEXT(pod->detail, "no such pod");
	}
	return OP_DONE;
}

static enum op_next ask(struct op *op, struct call *call, struct op_result *result, struct err *err)
{
	switch (op->kind) {
	case OP_BALANCE: return OP_DONE;
	case OP_VOLUME_SIZE: /* LS reports it already */
	case OP_IMAGE: return refuse(op, err);
	case OP_STAGE:
	case OP_FETCH:
	case OP_VOLUME_LS:
	case OP_VOLUME_DELETE:
		if (path_is_safe(op->want->file.path))
			break;
		err_set(err, ERR_REFUSED, "slurm %s: not a path on a volume: %s",
			child_verb(op->kind), op->want->file.path);
		return OP_FAILED;
	case OP_OFFERS:
		if (slurm_check_wishes(op->provider->section, op->want, NULL, err) < 0)
			return OP_FAILED;
		break;
	case OP_INSPECT:
	case OP_RELEASE:
		if (!slurm_split_id(op->want->id, NULL, NULL))
			return answer_without_pod(op, result);
		break;
	default: break;
	}
	if (slurm_ask(op, call, err) < 0)
		return OP_FAILED;
	/* what moves or removes files has limits of its own, which are longer */
	if (call->timeout_ms <= SMALL_MS)
		call->timeout_ms = section_int(op->provider->section, "answer_limit");
	return OP_CALL;
}

static void read_volumes(const struct op *op, const char *text, size_t len,
			 struct op_result *result)
{
	const char *at = text, *line, *end = text + len;
	size_t line_len;

	while ((line = bytes_next_line(&at, end, &line_len))) {
		if (!line_len || line_len >= sizeof(((struct volume *)0)->name))
			continue;
		struct volume *volume = op_result_add_volume(result);
		*volume = (struct volume){.used_bytes = -1};
		COPY_TEXT(volume->provider, SLURM_NAME);
		memcpy(volume->name, line, line_len);
		memcpy(volume->id, line, line_len);
		if (op->kind == OP_VOLUME)
			volume->size_gb = op->want->volume.size_gb;
	}
}

/* Lines of volume_ls in login.sh. A shortened name would be another file's. */
static void read_entries(const char *text, size_t len, struct op_result *result)
{
	const char *at = text, *line, *end = text + len;
	size_t line_len;

	while ((line = bytes_next_line(&at, end, &line_len))) {
		CLEANUP(free_text) char *copy = xstrndup(line, line_len);
		struct volume_entry entry = {0};
		long long bytes, files, changed_s;
		int name_at = 0;
		char kind[8];
		if (sscanf(copy, "%7[a-z]\037%lld\037%lld\037%lld\037%n", kind, &bytes, &files,
			   &changed_s, &name_at) != 4 ||
		    !name_at || strlen(copy + name_at) >= sizeof(entry.name))
			continue;
		COPY_TEXT(entry.name, copy + name_at);
		entry.folder = !strcmp(kind, "folder");
		entry.bytes = MAX(bytes, 0);
		entry.files = MAX(files, 0);
		entry.changed_s = MIN(MAX(changed_s, 0), EPOCH_MOST_S);
		result->entries =
			xrealloc(result->entries, (result->entry_count + 1) * sizeof(entry));
		result->entries[result->entry_count++] = entry;
	}
}

/* A file has no frame of ours around it: the last line of stderr tells that all went well. */
static enum op_next take_file(struct op *op, const struct reply *reply, struct op_result *result,
			      struct err *err)
{
	static const char fetched[] = "burst: fetched ";
	size_t len;
	const char *line = str_last_line(&reply->head, &len);

	if (reply->status != 0)
		return child_failed(op, reply, err);
	if (op->kind == OP_STAGE) {
		result->bytes = op->want->file.blocks.bytes;
		return OP_DONE;
	}
	if (!starts_with(line, fetched))
		return child_no_answer(op, "no count of bytes", err);
	result->bytes = atoll(line + strlen(fetched));
	if (reply->to_bytes == result->bytes)
		return OP_DONE;
	err_set(err, ERR_UNTRUSTED,
		"slurm fetch: got %lld bytes of a file of %lld bytes: the login shell may print "
		"something",
		(long long)reply->to_bytes, (long long)result->bytes);
	return OP_FAILED;
}

/* Reads the one pod that was asked for. */
static int read_pod(const struct op *op, const char *text, size_t len, struct op_result *result,
		    struct err *err)
{
	const char *wanted = op->kind == OP_RENT ? op->want->rent.name : op->want->id;

	if (slurm_read_jobs(op->provider->section, text, len, result, err) < 0)
		return -1;
	for (size_t i = 0; i < result->pod_count; i++) {
		const struct pod_view *pod = &result->pods[i];
		if (strcmp(op->kind == OP_RENT ? pod->name : pod->id, wanted))
			continue;
		result->pods[0] = *pod;
		result->pod_count = 1;
		return 0;
	}
	return err_set(err, op->kind == OP_RENT ? ERR_AMBIGUOUS : ERR_NOT_FOUND,
		       "squeue does not show the pod %s", wanted);
}

/* The job was accepted and can never start, as its reason says: cancels it in a second step. */
static enum op_next give_up(struct op *op, struct op_result *result)
{
	op->found = *result;
	*result = (struct op_result){.balance_microusd = -1};
	op->step = 1;
	return OP_CALL;
}

/* Without an accepted release the core has to know the pod. */
static enum op_next end_given_up(struct op *op, int status, struct op_result *result,
				 struct err *err)
{
	if (status != 0) {
		*result = op->found;
		op->found = (struct op_result){0};
		return OP_DONE;
	}
	err_set(err, ERR_REFUSED, "slurm rent: %s", op->found.pods[0].detail);
	return OP_FAILED;
}

static bool can_never_start(const struct pod_view *pod)
{
	return pod->state == POD_STATE_FAILED && !pod->started_at_s;
}

static int read_answer(const struct op *op, const char *text, size_t len, struct op_result *result,
		       struct err *err)
{
	switch (op->kind) {
	case OP_RENT:
	case OP_INSPECT: return read_pod(op, text, len, result, err);
	case OP_LIST: return slurm_read_jobs(op->provider->section, text, len, result, err);
	case OP_OFFERS: return slurm_read_offers(op, text, len, result, err);
	case OP_BILLING: return slurm_read_bill(op, text, len, result, err);
	case OP_RELEASE:
		result->release = starts_with(text, "taken") ? RELEASE_TAKEN : RELEASE_ABSENT;
		return 0;
	case OP_VOLUME:
	case OP_VOLUMES: read_volumes(op, text, len, result); return 0;
	case OP_VOLUME_LS: read_entries(text, len, result); return 0;
	case OP_CHECK:
	case OP_LOGS: str_addn(&result->text, text, len); return 0;
	default: return 0;
	}
}

static enum op_next take(struct op *op, const struct reply *reply, struct op_result *result,
			 struct err *err)
{
	const char *text;
	size_t len;
	if (op->kind == OP_STAGE || op->kind == OP_FETCH)
		return take_file(op, reply, result, err);
	int status = slurm_find_answer(reply, &text, &len);

	if (op->step)
		return end_given_up(op, status, result, err);
	if (status != 0)
		return child_failed(op, reply, err);
	if (read_answer(op, text, len, result, err) < 0)
		return OP_FAILED;
	return op->kind == OP_RENT && can_never_start(&result->pods[0]) ? give_up(op, result)
									: OP_DONE;
}

static const struct child_vendor slurm_vendor = {
	.name = SLURM_NAME,
	.words = words,
	.ask = ask,
	.take = take,
};

static enum op_next slurm_next(struct op *op, const struct reply *reply, struct call *call,
			       int64_t *wait_ms, struct op_result *result, struct err *err)
{
	(void)wait_ms;
	return child_next(op, reply, call, result, err);
}

static int slurm_open(struct provider **out, const struct section *s, const char *state_dir,
		      struct err *err)
{
	const char *login = section_text(s, "login");

	if (slurm_check_conf(s, NULL, err) < 0)
		return -1;
	*out = child_open(&slurm_vendor, s, state_dir, login ? login : "this cluster");
	return 0;
}

INCBIN(slurm_end_script, "providers/slurm/end.sh");

const struct provider_ops provider_slurm = {
	.abi = PROVIDER_ABI,
	.name = SLURM_NAME,
	.summary = "jobs of a Slurm cluster, from its login node or over ssh",
	.setup = "not on a login node, your own file needs one: providers = { slurm = { login = "
		 "\"me@login\"; price_per_gpu_hour = [\"A100=1.20\"]; }; };",
	.end_script = slurm_end_script,
	.waits_free = true,
	.create_once = true,
	.options = options,
	.can_stage = true,
	.can_fetch = true,
	.can_tidy = true,
	.stage_block_bytes = STAGE_BLOCK_BYTES,
	.poll_ms = 10000,
	.list_gap_ms = 5000,
	.open = slurm_open,
	.close = child_close,
	.account = child_account,
	.begin = child_begin,
	.next = slurm_next,
	.op_free = child_op_free,
	.dial = slurm_dial,
	.check_conf = slurm_check_conf,
	.check_wishes = slurm_check_wishes,
};
