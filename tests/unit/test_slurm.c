/* test_slurm.c - pods, offers and bills as Slurm's commands print them, and what the login node is
 * told
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "providers/slurm/impl.h"
#include "providers/slurm/slurm.h"

#define ATTEMPT "0011223344556677"
#define ID      "20." ATTEMPT
#define MARKER  "burst1.00000000000000aa.r1." ATTEMPT ".1800000000"
#define NAME    "burst-" ATTEMPT
#define S       "\037"
/* a line of squeue, as 22.05 prints it */
#define JOB(state, reason, nodes, comment)                                                         \
	"20" S NAME S state S reason S "1795852906" S "1795852908" S "1795852999" S nodes S        \
	"main" S "gres:gpu:l40s:1" S "me" S "/home/me/.local/share/burst/pods/" MARKER S comment   \
	"\n"

/* a line of sinfo */
#define NODE(partition, gres, state, up) partition S gres S state S "10:00:00" S up S "64000\n"
/* a line of sacct, as 22.05 prints it */
#define ACCOUNTED(state, seconds, nodes, tres)                                                     \
	"sacct" S seconds S "20" S NAME S state S "None" S "1795852906" S "1795852908" S           \
	"1795852999" S nodes S "main" S tres S "me" S "/home/me/pods/" MARKER S MARKER "\n"

struct bed {
	struct section *conf;
	struct provider *provider;
};

static struct bed bed_new(const char *login)
{
	struct bed b = {.conf = section_new(provider_slurm.options, "test")};
	struct err err;

	if (login)
		section_set_text(b.conf, "login", login, "test:1");
	section_add_item(b.conf, "gpus", "gpu=A100 80GB PCIe", "test:2");
	section_add_item(b.conf, "price_per_gpu_hour", "L40S=0.80", "test:3");
	assert_int_equal(provider_slurm.open(&b.provider, b.conf, "/state", &err), 0);
	return b;
}

static void bed_free(struct bed *b)
{
	provider_slurm.close(b->provider);
	section_free(b->conf);
}

/* Carries one operation with one answer of the login node; *program (may be NULL) gets its stdin.
 */
static enum op_next play(struct bed *b, enum op_kind kind, const struct op_want *want,
			 const char *out, const char *words, int status, struct str *program,
			 struct op_result *result, struct err *err)
{
	struct op *op = provider_slurm.begin(b->provider, kind, want);
	struct call call = {0};
	struct reply reply = {.status = status};
	int64_t wait_ms;

	*result = (struct op_result){0};
	enum op_next next = provider_slurm.next(op, NULL, &call, &wait_ms, result, err);
	if (next == OP_CALL) {
		if (program)
			str_addn(program, str_text(&call.body), call.body.len);
		str_add(&reply.body, "Welcome to the cluster\n");
		if (out)
			str_addf(&reply.body, "\nburst: begin\n%sburst: end %d\n", out, status);
		str_add(&reply.head, words);
		call_free(&call);
		next = provider_slurm.next(op, &reply, &call, &wait_ms, result, err);
		reply_free(&reply);
	}
	provider_slurm.op_free(op);
	return next;
}

/* ---- pods ---- */

static const struct {
	const char *name, *state, *reason, *nodes;
	enum pod_state want;
	enum pod_end end;
	int64_t started_at_s;
} states[] = {
	{"waits for a node", "PENDING", "Resources", "", POD_STATE_QUEUED, POD_END_UNKNOWN, 0},
	{"its share is used up", "PENDING", "AssocGrpGRES", "", POD_STATE_QUEUED, 0, 0},
	{"an unknown reason", "PENDING", "Nodes_required_for_job_are_DOWN", "", POD_STATE_QUEUED,
	 POD_END_UNKNOWN, 0},
	{"never: time", "PENDING", "PartitionTimeLimit", "", POD_STATE_FAILED, POD_END_UNKNOWN, 0},
	{"never: account", "PENDING", "InvalidAccount", "", POD_STATE_FAILED, POD_END_UNKNOWN, 0},
	{"never: another account's partition", "PENDING",
	 "Job's account not permitted to use this partition (members allows alien not lab)", "",
	 POD_STATE_FAILED, POD_END_UNKNOWN, 0},
	{"never: too long for its QOS", "PENDING", "QOSMaxWallDurationPerJobLimit", "",
	 POD_STATE_FAILED, POD_END_UNKNOWN, 0},
	{"never: too much for its account", "PENDING", "AssocMaxGRESPerJob", "", POD_STATE_FAILED,
	 POD_END_UNKNOWN, 0},
	{"another pod of the user must end", "PENDING", "QOSMaxJobsPerUserLimit", "",
	 POD_STATE_QUEUED, POD_END_UNKNOWN, 0},
	{"never: held", "PENDING", "JobHeldAdmin", "", POD_STATE_FAILED, POD_END_UNKNOWN, 0},
	{"node boots", "CONFIGURING", "None", "n1", POD_STATE_CREATING, 0, 1795852908},
	{"runs", "RUNNING", "None", "n1", POD_STATE_RUNNING, POD_END_UNKNOWN, 1795852908},
	{"holds the node", "COMPLETING", "None", "n1", POD_STATE_STOPPED, 0, 1795852908},
	{"suspended", "SUSPENDED", "None", "n1", POD_STATE_STOPPED, 0, 1795852908},
	{"script ended", "COMPLETED", "None", "n1", POD_STATE_GONE, POD_END_SCRIPT, 1795852908},
	{"script failed", "FAILED", "NonZeroExitCode", "n1", POD_STATE_GONE, POD_END_SCRIPT,
	 1795852908},
	{"cancelled", "CANCELLED", "None", "n1", POD_STATE_GONE, POD_END_OUTSIDE, 1795852908},
	{"cancelled in the queue", "CANCELLED", "Resources", "", POD_STATE_GONE, POD_END_QUEUED, 0},
	{"deadline in the queue", "DEADLINE", "DeadLine", "", POD_STATE_GONE, POD_END_QUEUED, 0},
	{"time limit", "TIMEOUT", "TimeLimit", "n1", POD_STATE_GONE, POD_END_LIFETIME, 1795852908},
	{"preempted", "PREEMPTED", "None", "n1", POD_STATE_GONE, POD_END_OUTSIDE, 1795852908},
	{"node failed", "NODE_FAIL", "NodeDown", "n1", POD_STATE_GONE, POD_END_VENDOR, 1795852908},
	{"memory", "OUT_OF_MEMORY", "OutOfMemory", "n1", POD_STATE_GONE, POD_END_MEMORY,
	 1795852908},
	{"a new word", "FLYING", "None", "n1", POD_STATE_UNKNOWN, POD_END_UNKNOWN, 1795852908},
};

static void states_are_read(void **state)
{
	struct bed b = bed_new(NULL);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		CLEANUP(free_text)
		char *line = xasprintf("20" S NAME S "%s" S "%s" S "1795852906" S "1795852908" S
				       "1795852999" S "%s" S "main" S "gres:gpu:l40s:1" S "me" S
				       "/x/pods/" MARKER S "(null)\n",
				       states[i].state, states[i].reason, states[i].nodes);
		struct op_result result;
		struct err err;
		assert_int_equal(play(&b, OP_LIST, NULL, line, "", 0, NULL, &result, &err),
				 OP_DONE);
		assert_int_equal(result.pod_count, 1);
		const struct pod_view *v = &result.pods[0];
		if (v->state != states[i].want || v->end != states[i].end ||
		    v->started_at_s != states[i].started_at_s)
			fail_msg("%s: %s, end %d, started %lld", states[i].name,
				 pod_state_name(v->state), (int)v->end, (long long)v->started_at_s);
		assert_int_equal(v->preempted, !strcmp(states[i].state, "PREEMPTED"));
		assert_int_equal(v->reach, v->state == POD_STATE_RUNNING ? REACH_DIAL : REACH_NONE);
		assert_int_equal(v->created_at_s, 1795852906);
		assert_string_equal(v->gpu, "L40S");
		assert_string_equal(v->user, "me");
		assert_string_equal(v->id, ID);
		/* the comment was overwritten: the folder's name has it, too */
		assert_string_equal(v->marker.attempt, ATTEMPT);
		assert_string_equal(v->marker.run, "r1");
		assert_int_equal(v->marker.hard_end_s, 1800000000);
		op_result_free(&result);
	}
	bed_free(&b);
}

static void other_jobs_are_skipped(void **state)
{
	static const char jobs[] = "7" S "burst-mine" S "RUNNING\n"
				   "8" S "train" S "RUNNING" S "None" S "1" S "2" S "3" S "n1" S
				   "main" S "N/A" S "me" S "/" S "a comment\nof two lines, 9" S NAME
				   "\n" JOB("RUNNING", "None", "n1", MARKER);
	static const char cut[] = "20" S NAME S "RUNNING\n";
	struct bed b = bed_new(NULL);
	struct op_result result;
	struct err err;

	(void)state;
	/* a line that begins as one of ours and is none must not make a list shorter */
	assert_int_equal(play(&b, OP_LIST, NULL, cut, "", 0, NULL, &result, &err), OP_FAILED);
	assert_int_equal(err.kind, ERR_BUG);
	assert_int_equal(play(&b, OP_LIST, NULL, jobs, "", 0, NULL, &result, &err), OP_FAILED);
	assert_int_equal(play(&b, OP_LIST, NULL, strstr(jobs, "20" S), "", 0, NULL, &result, &err),
			 OP_DONE);
	assert_int_equal(result.pod_count, 1);
	assert_string_equal(result.pods[0].marker.machine, "00000000000000aa");
	op_result_free(&result);
	bed_free(&b);
}

/* ---- failures ---- */

static const struct {
	const char *name;
	enum op_kind kind;
	const char *out, *words;
	int status;
	enum err_kind want;
} failures[] = {
	{"ssh is cut", OP_LIST, NULL, "client_loop: send disconnect: Broken pipe", 255,
	 ERR_TRANSIENT},
	{"no end of the answer", OP_LIST, NULL, "", 0, ERR_TRANSIENT},
	{"controller away", OP_LIST, "",
	 "squeue: error: Unable to contact slurm controller (connect failure)", 1, ERR_TRANSIENT},
	{"controller slow", OP_RENT, "",
	 "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", 1,
	 ERR_AMBIGUOUS},
	{"ssh is cut in a rent", OP_RENT, NULL, "Connection to login closed by remote host.", 255,
	 ERR_AMBIGUOUS},
	{"another submit is under way", OP_RENT, "", "mkdir: cannot create directory: File exists",
	 1, ERR_AMBIGUOUS},
	{"partition", OP_RENT, "",
	 "sbatch: error: invalid partition specified: x\nsbatch: error: Batch job submission "
	 "failed: Invalid partition name specified",
	 1, ERR_REFUSED},
	{"GPU", OP_RENT, "",
	 "sbatch: error: Batch job submission failed: Requested node configuration is not "
	 "available",
	 1, ERR_REFUSED},
	{"too many jobs", OP_RENT, "",
	 "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job "
	 "submit limit, user's size and/or time limits)",
	 1, ERR_NO_CAPACITY},
	{"quota", OP_RENT, "", "mkdir: cannot create directory: Disk quota exceeded", 1,
	 ERR_REFUSED},
	{"key", OP_LIST, NULL, "me@login: Permission denied (publickey).", 255, ERR_CREDENTIALS},
	{"host key", OP_LIST, NULL, "Host key verification failed.", 255, ERR_UNTRUSTED},
	{"no such login node", OP_LIST, NULL,
	 "ssh: Could not resolve hostname nope: Name or service not known", 255, ERR_CONFIG},
};

static void failures_have_kinds(void **state)
{
	struct op_want want = {.rent = {.name = NAME, .start_script = "exit"}};
	struct bed b = bed_new("login");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		struct op_result result;
		struct err err;
		assert_int_equal(play(&b, failures[i].kind, &want, failures[i].out,
				      failures[i].words, failures[i].status, NULL, &result, &err),
				 OP_FAILED);
		if (err.kind != failures[i].want)
			fail_msg("%s: %s (%s)", failures[i].name, err_kind_name(err.kind), err.msg);
	}
	bed_free(&b);
}

static void accounting_knows_forgotten_pods(void **state)
{
	struct op_want want = {.id = ID};
	struct bed b = bed_new(NULL);
	struct op_result result;
	struct err err;

	(void)state;
	assert_int_equal(play(&b, OP_INSPECT, &want,
			      ACCOUNTED("OUT_OF_MEMORY", "91", "n1",
					"billing=11,cpu=1,gres/gpu=1,gres/gpu:l40s=1,node=1"),
			      "", 0, NULL, &result, &err),
			 OP_DONE);
	assert_int_equal(result.pods[0].state, POD_STATE_GONE);
	assert_int_equal(result.pods[0].end, POD_END_MEMORY);
	assert_int_equal(result.pods[0].ended_at_s, 1795852999);
	assert_int_equal(result.pods[0].started_at_s, 1795852908);
	assert_string_equal(result.pods[0].gpu, "L40S");
	assert_string_equal(result.pods[0].detail, "OUT_OF_MEMORY");
	assert_string_equal(result.pods[0].marker.run, "r1");
	op_result_free(&result);
	assert_int_equal(play(&b, OP_INSPECT, &want,
			      ACCOUNTED("CANCELLED by 1000", "0", "None assigned", ""), "", 0, NULL,
			      &result, &err),
			 OP_DONE);
	assert_int_equal(result.pods[0].end, POD_END_QUEUED);
	assert_int_equal(result.pods[0].started_at_s, 0);
	assert_string_equal(result.pods[0].detail, "CANCELLED by 1000");
	op_result_free(&result);
	bed_free(&b);
}

static void forgotten_pods_are_gone(void **state)
{
	static const char unknown[] = "slurm_load_jobs error: Invalid job id specified";
	struct op_want want = {.id = ID};
	struct bed b = bed_new(NULL);
	struct op_result result;
	struct err err;

	(void)state;
	assert_int_equal(play(&b, OP_INSPECT, &want, "", unknown, 1, NULL, &result, &err), OP_DONE);
	assert_int_equal(result.pods[0].state, POD_STATE_GONE);
	op_result_free(&result);
	/* the number now belongs to another job */
	assert_int_equal(play(&b, OP_INSPECT, &want,
			      "20" S "burst-7766554433221100" S "RUNNING" S "None" S "1" S "2" S
			      "3" S "n1" S "main" S "N/A" S "me" S "/" S "\n",
			      "", 0, NULL, &result, &err),
			 OP_DONE);
	assert_int_equal(result.pods[0].state, POD_STATE_GONE);
	op_result_free(&result);
	assert_int_equal(play(&b, OP_RELEASE, &want, "absent\n", "", 0, NULL, &result, &err),
			 OP_DONE);
	assert_int_equal(result.release, RELEASE_ABSENT);
	assert_int_equal(play(&b, OP_RELEASE, &want, "taken\n", "", 0, NULL, &result, &err),
			 OP_DONE);
	assert_int_equal(result.release, RELEASE_TAKEN);
	bed_free(&b);
}

/* ---- offers ---- */

static void partitions_are_offered(void **state)
{
	static const char *const l40s[] = {"L40S", "A100", NULL}, *const two[] = {"L40S:2", NULL},
				 *const none[] = {"none", NULL};
	static const char sinfo[] = NODE("main*", "gpu:l40s:4(S:0-1)", "alloc", "up")
		NODE("main*", "gpu:l40s:4(S:0-1)", "idle", "up")
			NODE("main*", "gpu:t4:1", "down*", "up") NODE("gpu", "gpu:2", "mix", "up")
				NODE("shut", "gpu:l40s:1", "idle", "drain")
					NODE("cpu", "(null)", "idle", "up");
	struct op_want want = {.offers.gpus = l40s};
	struct bed b = bed_new(NULL);
	struct op_result result;
	struct err err;

	(void)state;
	assert_int_equal(play(&b, OP_OFFERS, &want, sinfo, "", 0, NULL, &result, &err), OP_DONE);
	assert_int_equal(result.offer_count, 1); /* of the default partition */
	assert_string_equal(result.offers[0].id, "main gpu:l40s:1");
	assert_string_equal(result.offers[0].gpu, "L40S");
	assert_string_equal(result.offers[0].stock, "high");
	assert_int_equal(result.offers[0].price_microusd_h, 800000);
	assert_non_null(strstr(str_text(&result.text), "A100 is in none of the partitions"));
	op_result_free(&result);

	/* no GPU for a job that needs none, and one alone without a wish */
	want.offers.gpus = none;
	assert_int_equal(play(&b, OP_OFFERS, &want, sinfo, "", 0, NULL, &result, &err), OP_DONE);
	assert_int_equal(result.offer_count, 1);
	assert_string_equal(result.offers[0].id, "main none");
	op_result_free(&result);
	want.offers.gpus = NULL;
	assert_int_equal(play(&b, OP_OFFERS, &want, sinfo, "", 0, NULL, &result, &err), OP_DONE);
	assert_int_equal(result.offer_count, 2);
	op_result_free(&result);

	want.offers.gpus = two;
	assert_int_equal(play(&b, OP_OFFERS, &want, sinfo, "", 0, NULL, &result, &err), OP_DONE);
	assert_int_equal(result.offer_count, 1);
	assert_string_equal(result.offers[0].id, "main gpu:l40s:2");
	assert_int_equal(result.offers[0].price_microusd_h, 1600000);
	op_result_free(&result);

	section_add_item(b.conf, "partitions", "gpu", "test:4");
	section_add_item(b.conf, "partitions", "shut", "test:4");
	section_add_item(b.conf, "partitions", "cpu", "test:4");
	want.offers.gpus = l40s;
	assert_int_equal(play(&b, OP_OFFERS, &want, sinfo, "", 0, NULL, &result, &err), OP_DONE);
	assert_int_equal(result.offer_count, 1);
	assert_string_equal(result.offers[0].id, "gpu gpu:1");
	assert_string_equal(result.offers[0].gpu, "A100 80GB PCIe");
	assert_int_equal(result.offers[0].wish, 1);
	assert_string_equal(result.offers[0].stock, "low");
	op_result_free(&result);
	bed_free(&b);
}

/* What Slurm calls slices: with the card by its autodetection, by their profile alone, or without a
 * type in a partition of slices. */
static const struct {
	const char *gres, *partition_gpu, *wish; /* partition_gpu NULL: the config names none */
	const char *gpu, *id;                    /* NULL: not offered */
	int vram_gb;
} slices[] = {
	{"gpu:a100_1g.5gb:7", NULL, "A100 40GB MIG 1g.5gb", "A100 40GB MIG 1g.5gb",
	 "main gpu:a100_1g.5gb:1", 5},
	{"gpu:nvidia_h100_80gb_hbm3_1g.10gb:7(S:0-1)", NULL, "H100 MIG 1g.10gb",
	 "H100 SXM MIG 1g.10gb", "main gpu:nvidia_h100_80gb_hbm3_1g.10gb:1", 10},
	{"gpu:a100-sxm4-80gb_1g.10gb.me:1", NULL, "A100 MIG 1g.10gb", "A100 80GB SXM MIG 1g.10gb",
	 "main gpu:a100-sxm4-80gb_1g.10gb.me:1", 10},
	{"gpu:1g.10gb:1", "main=H100 PCIe", "H100 PCIe MIG 1g.10gb", "H100 PCIe MIG 1g.10gb",
	 "main gpu:1g.10gb:1", 10},
	{"gpu:h100:2,gpu:1g.10gb:14", "main=H100", "H100 MIG 1g.10gb:2", "H100 SXM MIG 1g.10gb",
	 "main gpu:1g.10gb:2", 10},
	{"gpu:7", "main=A100 MIG 1g.10gb", "A100 MIG 1g.10gb", "A100 80GB SXM MIG 1g.10gb",
	 "main gpu:1", 10},
	{"gpu:1g.10gb:1", NULL, "1g.10gb", "1g.10gb", "main gpu:1g.10gb:1", 10},
	{"gpu:1g.10gb:1", NULL, "H100", NULL, NULL, 0},          /* a slice is not its card */
	{"gpu:h100:2", NULL, "H100 MIG 1g.10gb", NULL, NULL, 0}, /* nor the card its slice */
	{"gpu:h100_1g.10gb:7", NULL, "H100 MIG 1g.20gb", NULL, NULL, 0},
};

static void slices_are_offered(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(slices); i++) {
		const char *const wishes[] = {slices[i].wish, NULL};
		struct op_want want = {.offers.gpus = wishes};
		CLEANUP(free_text)
		char *text = xasprintf(NODE("main*", "%s", "idle", "up"), slices[i].gres);
		struct bed b = bed_new(NULL);
		struct op_result result;
		struct err err;
		if (slices[i].partition_gpu)
			section_add_item(b.conf, "gpus", slices[i].partition_gpu, "test:4");
		assert_int_equal(play(&b, OP_OFFERS, &want, text, "", 0, NULL, &result, &err),
				 OP_DONE);
		const struct offer *o = result.offers;
		if (result.offer_count != (slices[i].id != NULL) ||
		    (slices[i].id &&
		     (strcmp(o->gpu, slices[i].gpu) || strcmp(o->id, slices[i].id) ||
		      o->vram_gb != slices[i].vram_gb)))
			fail_msg("%s: %d offers: %s, %s, %d GB", slices[i].gres,
				 (int)result.offer_count, result.offer_count ? o->gpu : "",
				 result.offer_count ? o->id : "",
				 result.offer_count ? o->vram_gb : 0);
		op_result_free(&result);
		/* a slice without a name of its card must not look larger than it is */
		want.offers.vram_gb = 16;
		assert_int_equal(play(&b, OP_OFFERS, &want, text, "", 0, NULL, &result, &err),
				 OP_DONE);
		assert_int_equal(result.offer_count, 0);
		op_result_free(&result);
		bed_free(&b);
	}
}

/* A job's slice, in squeue's words and in those of accounting. */
static void slices_of_jobs_are_known(void **state)
{
	static const char *const answers[] = {
		"20" S NAME S "RUNNING" S "None" S "1" S "2" S "3" S "n1" S "main" S
		"gres:gpu:1g.10gb:1" S "me" S "/" S MARKER "\n",
		ACCOUNTED("COMPLETED", "90", "n1",
			  "billing=11,cpu=1,gres/gpu:1g.10gb=1,gres/gpu=1"),
	};
	struct op_want want = {.id = ID};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		struct bed b = bed_new(NULL);
		struct op_result result;
		struct err err;
		section_add_item(b.conf, "gpus", "main=H100", "test:4");
		assert_int_equal(
			play(&b, OP_INSPECT, &want, answers[i], "", 0, NULL, &result, &err),
			OP_DONE);
		assert_string_equal(result.pods[0].gpu, "H100 SXM MIG 1g.10gb");
		op_result_free(&result);
		bed_free(&b);
	}
}

/* ---- bills ---- */

static void bills_count_from_the_start(void **state)
{
	struct op_want want = {.id = ID};
	struct bed b = bed_new(NULL);
	struct op_result result;
	struct err err;

	(void)state;
	assert_int_equal(play(&b, OP_BILLING, &want, JOB("CANCELLED", "None", "n1", MARKER), "", 0,
			      NULL, &result, &err),
			 OP_DONE);
	assert_int_equal(result.billing.billed_ms, 91000);
	assert_true(result.billing.reported);
	assert_int_equal(play(&b, OP_BILLING, &want, JOB("CANCELLED", "None", "", MARKER), "", 0,
			      NULL, &result, &err),
			 OP_DONE);
	assert_int_equal(result.billing.billed_ms, 0);
	/* accounting does not count the time in which a job was suspended */
	assert_int_equal(play(&b, OP_BILLING, &want,
			      JOB("CANCELLED", "None", "n1", MARKER)
				      ACCOUNTED("CANCELLED by 0", "83", "n1", "billing=11,cpu=1"),
			      "", 0, NULL, &result, &err),
			 OP_DONE);
	assert_int_equal(result.billing.billed_ms, 83000);
	assert_int_equal(result.billing.cost_microusd, 0); /* no price of a unit is given */
	assert_int_equal(play(&b, OP_BILLING, &want, JOB("RUNNING", "None", "n1", MARKER), "", 0,
			      NULL, &result, &err),
			 OP_FAILED);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	bed_free(&b);
}

/* ---- prices by Slurm's billing units ---- */

static const struct {
	const char *name, *weights, *flags, *memory, *gpu;
	int64_t cpu, memory_gb, units;
} by_units[] = {
	{"sum, whole units", "CPU=1.5,GRES/gpu=10.0", "", "", "T4", 0, 0, 11},
	{"of cores", "CPU=1.5,GRES/gpu=10.0", "", "", "T4", 4, 0, 16},
	{"of the type, too", "GRES/gpu=10,GRES/gpu:t4=2,GRES/gpu:l40s=7", "", "", "T4", 0, 0, 12},
	{"two GPUs", "GRES/gpu=10", "", "", "T4:2", 0, 0, 20},
	{"the largest alone", "CPU=8,GRES/gpu=10", "SMALL_RELATIVE_TO_TIME,MAX_TRES", "", "T4", 1,
	 0, 10},
	{"without a GPU", "CPU=1.5,GRES/gpu=10", "", "", "none", 2, 0, 3},
	{"memory of the config", "Mem=0.25G", "", "DefMemPerCPU=4000", "T4", 0, 16, 4},
	{"memory in MB", "Mem=0.001", "", "", "T4", 0, 16, 16},
	{"default memory of a core", "Mem=0.25G", "", "DefMemPerCPU=4096", "T4", 8, 0, 8},
	{"default memory", "mem=0.25g", "", "DefMemPerNode=8192", "T4", 8, 0, 2},
	{"no default: all of the node", "Mem=0.25G", "", "DefMemPerNode=UNLIMITED", "T4", 0, 0, 15},
	{"a node, no license", "Node=3,License/x=100", "", "", "T4", 0, 0, 3},
	{"no weights: its cores", "", "", "", "T4", 4, 0, 4},
	{"nothing but zeros: its cores", "GRES/gpu=0", "", "", "T4", 4, 0, 4},
	{"nonsense", "CPU=nan,GRES/gpu=-3,=,x,Mem=inf,Node", "", "", "T4", 4, 0, 4},
};

static void a_unit_has_a_price(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(by_units); i++) {
		CLEANUP(free_text)
		char *text =
			xasprintf(NODE("main*", "gpu:t4:2", "idle",
				       "up") "=flags" S "%s\n=weights" S "main" S "%s" S "%s\n",
				  by_units[i].flags, by_units[i].memory, by_units[i].weights);
		const char *gpus[] = {by_units[i].gpu, NULL};
		struct op_want want = {.offers = {.gpus = gpus,
						  .cpu = by_units[i].cpu,
						  .memory_gb = by_units[i].memory_gb}};
		struct bed b = bed_new(NULL);
		struct op_result result;
		struct err err;
		section_set_int(b.conf, "price_per_billing_hour", 10000, "test:5");
		assert_int_equal(play(&b, OP_OFFERS, &want, text, "", 0, NULL, &result, &err),
				 OP_DONE);
		if (result.offer_count != 1 ||
		    result.offers[0].price_microusd_h != by_units[i].units * 10000)
			fail_msg("%s: %d offers, %lld", by_units[i].name, (int)result.offer_count,
				 result.offer_count ? (long long)result.offers[0].price_microusd_h
						    : 0);
		op_result_free(&result);
		bed_free(&b);
	}
}

static void the_price_of_a_card_comes_first(void **state)
{
	static const char text[] = NODE("main*", "gpu:l40s:4", "idle", "up")
		NODE("main*", "gpu:l40s:4", "mix", "up") "=weights" S "main" S S "GRES/gpu=10\n";
	static const char *const l40s[] = {"L40S", NULL};
	struct op_want want = {.offers.gpus = l40s};
	struct bed b = bed_new(NULL);
	struct op_result result;
	struct err err;

	(void)state;
	section_set_int(b.conf, "price_per_billing_hour", 80000, "test:5");
	assert_int_equal(play(&b, OP_OFFERS, &want, text, "", 0, NULL, &result, &err), OP_DONE);
	assert_int_equal(result.offers[0].price_microusd_h, 800000);
	assert_string_equal(str_text(&result.text), ""); /* both say the same */
	op_result_free(&result);
	section_set_int(b.conf, "price_per_billing_hour", 90000, "test:5");
	assert_int_equal(play(&b, OP_OFFERS, &want, text, "", 0, NULL, &result, &err), OP_DONE);
	assert_int_equal(result.offers[0].price_microusd_h, 800000);
	assert_string_equal(str_text(&result.text),
			    "L40S in partition main: price_per_gpu_hour says $0.8000 an hour, "
			    "price_per_billing_hour $0.9000 for 10 units: the first one counts\n");
	op_result_free(&result);
	bed_free(&b);
}

static void bills_by_units(void **state)
{
	static const char ended[] =
		ACCOUNTED("COMPLETED", "90", "n1", "billing=11,cpu=1,gres/gpu:l40s=1,node=1");
	struct op_want want = {.id = ID, .bill.gpu = "T4"};
	struct bed b = bed_new(NULL);
	struct op_result result;
	struct err err;

	(void)state;
	section_set_int(b.conf, "price_per_billing_hour", 80000, "test:5");
	assert_int_equal(play(&b, OP_BILLING, &want, ended, "", 0, NULL, &result, &err), OP_DONE);
	assert_int_equal(result.billing.billed_ms, 90000);
	assert_int_equal(result.billing.cost_microusd, 22000); /* 11 x $0.08 x 90 s */
	COPY_TEXT(want.bill.gpu, "L40S");                      /* its own price comes first */
	assert_int_equal(play(&b, OP_BILLING, &want, ended, "", 0, NULL, &result, &err), OP_DONE);
	assert_int_equal(result.billing.cost_microusd, 0);
	bed_free(&b);
}

/* ---- what the login node is told ---- */

static void the_program_of_a_rent(void **state)
{
	static char key[] = "BURST_HOST_KEY_B64", value[] = "s3cr3t'key", box[] = "BURST_CONTAINER",
		    one[] = "1";
	static struct env_pair env[] = {{key, value, true}, {box, one, false}};
	struct op_want want = {.rent = {.name = NAME,
					.start_script = "echo it's me\n",
					.env = env,
					.env_count = 2,
					.run_s = 610,
					.marker = {.machine = "00000000000000aa",
						   .run = "r1",
						   .attempt = ATTEMPT,
						   .hard_end_s = 1800000000}}};
	CLEANUP(str_free) struct str program = STR_INIT;
	struct bed b = bed_new("me@login");
	struct op_result result;
	struct err err;

	(void)state;
	COPY_TEXT(want.rent.offer.id, "main gpu:l40s:1");
	COPY_TEXT(want.rent.volume.id, "v");
	section_set_text(b.conf, "account", "o'hara", "test:5");
	section_add_item(b.conf, "sbatch_options", "--exclude=n[1-3]", "test:6");
	assert_int_equal(play(&b, OP_RENT, &want, JOB("PENDING", "Priority", "", MARKER), "", 0,
			      &program, &result, &err),
			 OP_DONE);
	assert_string_equal(result.pods[0].id, ID);
	assert_int_equal(result.pods[0].state, POD_STATE_QUEUED);
	op_result_free(&result);
	const char *text = str_text(&program), *batch = strstr(text, "batch=");
	assert_non_null(strstr(text, "marker='" MARKER "'"));
	assert_non_null(strstr(text, "'--exclude=n[1-3]' '--account=o'\\''hara' '--partition=main' "
				     "'--gres=gpu:l40s:1' </dev/null"));
	assert_non_null(strstr(text, "run_s=610"));
	assert_null(strstr(text, "BURST_CONTAINER"));
	/* the key is in the file alone, not in the script that Slurm keeps */
	assert_non_null(strstr(text, "s3cr3t"));
	assert_null(strstr(batch, "s3cr3t"));
	bed_free(&b);
}

/* Slurm accepts a job that can never start: it is cancelled at once, and its reason is the answer.
 */
static void a_job_that_never_starts_is_taken_back(void **state)
{
	struct op_want want = {.rent = {.name = NAME, .start_script = ""}};
	struct bed b = bed_new(NULL);

	(void)state;
	COPY_TEXT(want.rent.offer.id, "main gpu:l40s:1");
	for (int released = 0; released < 2; released++) {
		struct op *op = provider_slurm.begin(b.provider, OP_RENT, &want);
		struct op_result result = {0};
		struct call call = {0};
		struct reply reply = {0}, second = {.status = released ? 0 : 1};
		struct err err = {0};
		int64_t wait_ms;
		assert_int_equal(provider_slurm.next(op, NULL, &call, &wait_ms, &result, &err),
				 OP_CALL);
		call_free(&call);
		str_add(&reply.body, "burst: begin\n" JOB("PENDING", "PartitionTimeLimit", "",
							  MARKER) "burst: end 0\n");
		assert_int_equal(provider_slurm.next(op, &reply, &call, &wait_ms, &result, &err),
				 OP_CALL);
		assert_non_null(strstr(str_text(&call.body), "job='20'\nname='" NAME "'\n"));
		assert_non_null(strstr(str_text(&call.body), "{\nanswer release </dev/null\n}"));
		call_free(&call);
		str_addf(&second.body, "burst: begin\nburst: end %d\n", second.status);
		assert_int_equal(provider_slurm.next(op, &second, &call, &wait_ms, &result, &err),
				 released ? OP_FAILED : OP_DONE);
		if (released) {
			assert_int_equal(err.kind, ERR_REFUSED);
			assert_non_null(strstr(err.msg, "lower caps.max_duration"));
		} else { /* the core releases it */
			assert_string_equal(result.pods[0].id, ID);
			assert_int_equal(result.pods[0].state, POD_STATE_FAILED);
		}
		reply_free(&reply);
		reply_free(&second);
		op_result_free(&result);
		provider_slurm.op_free(op);
	}
	bed_free(&b);
}

static void dialling(void **state)
{
	struct pod_view pod = {.id = ID}, stranger = {.id = "20.x; rm -rf /"};
	struct call call = {.kind = CALL_CHILD};
	struct bed b = bed_new("me@login");
	struct err err;

	(void)state;
	assert_int_equal(provider_slurm.dial(b.provider, &stranger, &call, &err), -1);
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_int_equal(provider_slurm.dial(b.provider, &pod, &call, &err), 0);
	assert_string_equal(call.argv[0], "ssh");
	assert_string_equal(call.argv[call.argc - 2], "me@login");
	const char *command = call.argv[call.argc - 1];
	assert_true(starts_with(command, "exec sh -c '"));
	assert_non_null(strstr(command, "srun -Q --overlap --jobid=20 -N1 -n1 -u "));
	assert_non_null(strstr(command, "BURST_HOME=/tmp/" NAME " "));
	call_free(&call);
	bed_free(&b);
}

/* ---- keys ---- */

static const struct {
	const char *key, *value, *says;
} bad_keys[] = {
	{"login", "-oProxyCommand=x", "a host that ssh knows"},
	{"volume_dir", "shared", "a path that begins with / or ~/"},
	{"volume_dir", "/a%j", "a path that begins with / or ~/"},
	{"sbatch_options", "--job-name=x", "burst itself sets --job-name"},
	{"sbatch_options", "--job=x", "burst itself sets --job-name"},
	{"sbatch_options", "-J x", "is not like"},
	{"price_per_gpu_hour", "L40S", "is not like"},
	{"gpus", "A100", "is not like"},
};

static void bad_keys_are_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad_keys); i++) {
		struct section *conf = section_new(provider_slurm.options, "burst.cfg:1");
		struct err err = {0};
		if (i < 3)
			section_set_text(conf, bad_keys[i].key, bad_keys[i].value, "burst.cfg:7");
		else
			section_add_item(conf, bad_keys[i].key, bad_keys[i].value, "burst.cfg:7");
		assert_int_equal(provider_slurm.check_conf(conf, NULL, &err), -1);
		assert_int_equal(err.kind, ERR_CONFIG);
		if (!strstr(err.msg, bad_keys[i].says) || !starts_with(err.msg, "burst.cfg:7: "))
			fail_msg("%s: %s", bad_keys[i].value, err.msg);
		section_free(conf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_are_read),
		cmocka_unit_test(other_jobs_are_skipped),
		cmocka_unit_test(failures_have_kinds),
		cmocka_unit_test(accounting_knows_forgotten_pods),
		cmocka_unit_test(forgotten_pods_are_gone),
		cmocka_unit_test(partitions_are_offered),
		cmocka_unit_test(slices_are_offered),
		cmocka_unit_test(slices_of_jobs_are_known),
		cmocka_unit_test(bills_count_from_the_start),
		cmocka_unit_test(a_unit_has_a_price),
		cmocka_unit_test(the_price_of_a_card_comes_first),
		cmocka_unit_test(bills_by_units),
		cmocka_unit_test(the_program_of_a_rent),
		cmocka_unit_test(a_job_that_never_starts_is_taken_back),
		cmocka_unit_test(dialling),
		cmocka_unit_test(bad_keys_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
