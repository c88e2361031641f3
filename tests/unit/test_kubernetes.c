/* test_kubernetes.c - what the Kubernetes translator reads in objects of a cluster, and the Pod
 * that it makes. Objects are cut down from what Kubernetes 1.37.2 answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/jsonx.h"
#include "kubernetes_bed.h"
#include "providers/kubernetes/kubernetes.h"

#define NOW_S 1795853000 /* 2026-11-28T08:03:20Z */

static json_t *parsed(const char *text)
{
	json_error_t why;
	json_t *object = json_loads(text, 0, &why);

	if (!object)
		fail_msg("the test's JSON: %s in %s", why.text, text);
	return object;
}

/* ---- pods ---- */

#define NODE "\"spec\":{\"nodeName\":\"gpu-7\"},"
#define PLACED                                                                                     \
	"{\"type\":\"PodScheduled\",\"status\":\"True\",\"lastTransitionTime\":\"2026-11-28T08:"   \
	"00:00Z\"}"
#define TAKEN                                                                                      \
	",{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":"                          \
	"\"PreemptionByScheduler\"}"
#define STATUS(phase, conditions, rest)                                                            \
	NODE "\"status\":{\"phase\":\"" phase "\",\"conditions\":[" conditions "]" rest "}"
#define STATE(state) ",\"containerStatuses\":[{\"name\":\"main\",\"state\":{" state "}}]"
#define WAITS(reason, message)                                                                     \
	STATUS("Pending", PLACED,                                                                  \
	       STATE("\"waiting\":{\"reason\":\"" reason "\",\"message\":\"" message "\"}"))
#define OVER(reason, code)                                                                         \
	STATE("\"terminated\":{\"reason\":\"" reason "\",\"exitCode\":" code                       \
	      ",\"finishedAt\":\"2026-11-28T08:02:00Z\"}")
#define RUNS STATE("\"running\":{\"startedAt\":\"2026-11-28T08:00:03Z\"}")

static const struct {
	const char *name, *deleted, *rest;
	enum pod_state state;
	enum pod_end end;
	bool preempted;
	const char *detail;
} pods[] = {
	{"no condition yet", "", STATUS("Pending", "", ""), POD_STATE_QUEUED, POD_END_UNKNOWN,
	 false, ""},
	{"no node fits", "",
	 STATUS("Pending",
		"{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\","
		"\"message\":\"0/1 nodes are available: 1 Insufficient nvidia.com/gpu.\"}",
		""),
	 POD_STATE_QUEUED, POD_END_UNKNOWN, false,
	 "Unschedulable: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu."},
	{"in Kueue's queue", "",
	 STATUS("Pending",
		"{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"SchedulingGated\"}",
		""),
	 POD_STATE_QUEUED, POD_END_UNKNOWN, false, "SchedulingGated"},
	{"its image is on the way", "", WAITS("ContainerCreating", ""), POD_STATE_CREATING,
	 POD_END_UNKNOWN, false, ""},
	{"no such image", "", WAITS("ErrImagePull", "rpc error: x:1: not found"), POD_STATE_FAILED,
	 POD_END_SETUP, false, "ErrImagePull: rpc error: x:1: not found"},
	{"a name that is none", "", WAITS("InvalidImageName", "couldn't parse"), POD_STATE_FAILED,
	 POD_END_SETUP, false, "InvalidImageName: couldn't parse"},
	{"a registry that hiccups for too long", "", WAITS("ImagePullBackOff", "i/o timeout"),
	 POD_STATE_FAILED, POD_END_SETUP, false, "ImagePullBackOff: i/o timeout"},
	{"runs", "", STATUS("Running", PLACED, RUNS), POD_STATE_RUNNING, POD_END_UNKNOWN, false,
	 ""},
	{"preempted, and still in its grace", "2026-11-28T08:03:30Z",
	 STATUS("Running", PLACED TAKEN, RUNS), POD_STATE_RUNNING, POD_END_OUTSIDE, true, ""},
	{"its node is silent", "2026-11-28T08:01:00Z", STATUS("Running", PLACED, RUNS),
	 POD_STATE_STOPPED, POD_END_OUTSIDE, false, "node gpu-7 does not confirm its end"},
	{"preempted, and obeyed: the phase lies", "",
	 STATUS("Succeeded", PLACED TAKEN, OVER("Completed", "0")), POD_STATE_GONE, POD_END_OUTSIDE,
	 true, "Completed"},
	{"out of memory: the phase lies", "", STATUS("Succeeded", PLACED, OVER("OOMKilled", "0")),
	 POD_STATE_GONE, POD_END_MEMORY, false, "OOMKilled"},
	{"evicted", "",
	 STATUS("Failed", PLACED,
		",\"reason\":\"Evicted\",\"message\":\"The node was low on resource: memory.\""),
	 POD_STATE_GONE, POD_END_OUTSIDE, true, "Evicted: The node was low on resource: memory."},
	{"the deadline", "",
	 STATUS("Failed", PLACED, ",\"reason\":\"DeadlineExceeded\"" OVER("Completed", "0")),
	 POD_STATE_GONE, POD_END_LIFETIME, false, "DeadlineExceeded"},
	{"it ended itself", "", STATUS("Succeeded", PLACED, OVER("Completed", "0")), POD_STATE_GONE,
	 POD_END_SCRIPT, false, "Completed"},
	{"a node refuses it", "",
	 STATUS("Failed", PLACED, ",\"reason\":\"UnexpectedAdmissionError\""), POD_STATE_GONE,
	 POD_END_VENDOR, false, "UnexpectedAdmissionError"},
	{"ended in the queue", "", STATUS("Failed", "", ""), POD_STATE_GONE, POD_END_QUEUED, false,
	 ""},
	{"a node does not answer", "", STATUS("Unknown", PLACED, RUNS), POD_STATE_RUNNING,
	 POD_END_UNKNOWN, false, ""},
	{"a phase of tomorrow", "", STATUS("Frozen", PLACED, ""), POD_STATE_UNKNOWN,
	 POD_END_UNKNOWN, false, "node gpu-7 does not answer"},
};

static json_t *pod_object(const char *name, const char *deleted, const char *rest)
{
	CLEANUP(free_text)
	char *text = xasprintf(
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"creationTimestamp\":"
		"\"2026-11-28T07:59:00Z\"%s%s%s,\"labels\":{\"burst.dev/machine\":"
		"\"00000000000000aa\",\"burst.dev/run\":\"r1\",\"burst.dev/attempt\":"
		"\"00000000000000f1\"},\"annotations\":{\"burst.dev/hard-end\":\"1795860000\","
		"\"burst.dev/gpu\":\"L40S\",\"burst.dev/price-microusd-h\":\"1100000\"}},%s}",
		name, deleted[0] ? ",\"deletionTimestamp\":\"" : "", deleted,
		deleted[0] ? "\"" : "", rest);

	return parsed(text);
}

static void test_states(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pods); i++) {
		CLEANUP(json_decref)
		json_t *pod = pod_object("burst-00000000000000f1", pods[i].deleted, pods[i].rest);
		struct pod_view view;
		struct err err;
		if (kube_read_pod(pod, NOW_S, &view, &err) < 0)
			fail_msg("%s: %s", pods[i].name, err.msg);
		if (view.state != pods[i].state || view.end != pods[i].end ||
		    view.preempted != pods[i].preempted || strcmp(view.detail, pods[i].detail) != 0)
			fail_msg("%s: state %s, end %d, preempted %d, detail \"%s\"", pods[i].name,
				 pod_state_name(view.state), (int)view.end, view.preempted,
				 view.detail);
	}
}

static void test_what_is_read_back(void **state)
{
	CLEANUP(json_decref)
	json_t *pod = pod_object("burst-00000000000000f1", "", STATUS("Running", PLACED, RUNS));
	struct pod_view view;
	struct err err;

	(void)state;
	assert_int_equal(kube_read_pod(pod, NOW_S, &view, &err), 0);
	assert_string_equal(view.id, "burst-00000000000000f1");
	assert_string_equal(view.marker.machine, "00000000000000aa");
	assert_int_equal(view.marker.hard_end_s, 1795860000);
	assert_string_equal(view.gpu, "L40S");
	assert_int_equal(view.price_microusd_h, 1100000);
	assert_int_equal(view.started_at_s - view.created_at_s, 60);
	assert_int_equal(view.reach, REACH_DIAL);
}

static void test_what_is_no_pod(void **state)
{
	static const char *const names[] = {"", "a/b", "../x", "-x", "A", "x y"};
	struct pod_view view;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CLEANUP(json_decref)
		json_t *pod = pod_object(names[i], "", STATUS("Running", "", ""));
		if (kube_read_pod(pod, NOW_S, &view, &err) == 0)
			fail_msg("\"%s\" was taken for a pod's name", names[i]);
	}
}

/* A reply that is no list must not read as "no pods". */
static void test_lists(void **state)
{
	static const struct {
		const char *text;
		int count; /* -1: an error */
	} lists[] = {
		{"{\"items\":[]}", 0},
		{"{\"kind\":\"PodList\"}", -1},
		{"{\"items\":null}", -1},
		{"{\"items\":[{}]}", -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		CLEANUP(json_decref) json_t *list = parsed(lists[i].text);
		struct op_result result = {0};
		struct err err;
		int got =
			kube_read_pods(list, NOW_S, &result, &err) < 0 ? -1 : (int)result.pod_count;
		op_result_free(&result);
		if (got != lists[i].count)
			fail_msg("%s: %d", lists[i].text, got);
	}
}

/* ---- with a config ---- */

static void test_no_secret_in_the_spec(void **state)
{
	static char key[] = "BURST_HOST_KEY_B64", value[] = "c2VjcmV0IGtleQ'", run[] = "BURST_RUN",
		    r1[] = "r1", home[] = "BURST_HOME", elsewhere[] = "/elsewhere";
	struct env_pair env[] = {{key, value, true}, {run, r1, false}, {home, elsewhere, false}};
	struct rent_request rent = {.offer = {.id = "nvidia.com/gpu.product=NVIDIA-L40S,L40S",
					      .gpu = "L40S",
					      .gpus = 1},
				    .name = "burst-00000000000000f1",
				    .marker.run = "r1",
				    .run_s = 600,
				    .start_script = "echo $(date) $$",
				    .env = env,
				    .env_count = ARRAY_LEN(env)};

	(void)state;
	CLEANUP(json_decref) json_t *pod = kube_pod_spec(conf, &rent);
	CLEANUP(free_text) char *text = jsonx_line(pod), *keys = kube_keys_text(&rent);
	assert_null(strstr(text, "c2VjcmV0"));
	assert_null(strstr(text, "/elsewhere"));
	/* "$(date)" would be looked up among the variables, and "$$" become "$" */
	assert_non_null(strstr(text, "\"echo $$(date) $$$$\""));
	assert_non_null(strstr(text, "{\"name\":\"BURST_KEYS\",\"value\":\"exec\"}"));
	assert_non_null(strstr(text, "\"activeDeadlineSeconds\":660"));
	assert_non_null(strstr(text, "\"values\":[\"NVIDIA-L40S\",\"L40S\"]"));
	assert_non_null(strstr(text, "\"limits\":{\"nvidia.com/gpu\":\"1\"}"));
	assert_non_null(strstr(text, "\"automountServiceAccountToken\":false"));
	assert_non_null(strstr(text, "\"restartPolicy\":\"Never\""));
	assert_string_equal(keys, "export BURST_HOST_KEY_B64='c2VjcmV0IGtleQ'\\'''\n# whole\n");
}

/* Where a pod may run, and whose queue it waits in: only a spot offer gets what spot nodes want. */
static void test_placement(void **state)
{
	static const struct {
		bool spot;
		const char *selector, *tolerations;
	} offers[] = {
		{false, "{\"pool\":\"gpu\"}",
		 "[{\"key\":\"nvidia.com/gpu\",\"operator\":\"Exists\"},"
		 "{\"key\":\"team\",\"operator\":\"Equal\",\"value\":\"x\",\"effect\":"
		 "\"NoSchedule\"}]"},
		{true, "{\"pool\":\"gpu\",\"cloud.google.com/gke-spot\":\"true\"}",
		 "[{\"key\":\"nvidia.com/gpu\",\"operator\":\"Exists\"},"
		 "{\"key\":\"team\",\"operator\":\"Equal\",\"value\":\"x\",\"effect\":"
		 "\"NoSchedule\"},"
		 "{\"key\":\"spot\",\"operator\":\"Exists\"}]"},
	};

	(void)state;
	section_add_item(conf, "node_selector", "pool=gpu", "burst.cfg:4");
	section_add_item(conf, "tolerations", "team=x:NoSchedule", "burst.cfg:5");
	section_add_item(conf, "spot_selector", "cloud.google.com/gke-spot=true", "burst.cfg:6");
	section_add_item(conf, "spot_tolerations", "spot", "burst.cfg:7");
	section_set_text(conf, "queue", "team-a", "burst.cfg:8");
	for (size_t i = 0; i < ARRAY_LEN(offers); i++) {
		struct rent_request rent = {
			.offer = {.id = "any", .gpus = 1, .spot = offers[i].spot},
			.name = "burst-00000000000000f1",
			.start_script = ""};
		CLEANUP(json_decref) json_t *pod = kube_pod_spec(conf, &rent);
		const json_t *spec = json_object_get(pod, "spec"),
			     *meta = json_object_get(pod, "metadata");
		CLEANUP(free_text)
		char *selector = jsonx_line(json_object_get(spec, "nodeSelector"));
		CLEANUP(free_text)
		char *tolerations = jsonx_line(json_object_get(spec, "tolerations"));
		assert_string_equal(selector, offers[i].selector);
		assert_string_equal(tolerations, offers[i].tolerations);
		assert_null(json_object_get(spec, "affinity"));
		assert_null(json_object_get(spec, "schedulingGates")); /* Kueue's to set */
		assert_string_equal(jsonx_text(json_object_get(meta, "labels"),
					       "kueue.x-k8s.io/queue-name", ""),
				    "team-a");
		assert_string_equal(jsonx_text(json_object_get(meta, "annotations"), NOTE_SPOT, ""),
				    offers[i].spot ? "true" : "false");
	}
}

/* ---- offers ---- */

#define CARD(label, value, more)                                                                   \
	"{\"metadata\":{\"labels\":{\"" label "\":\"" value "\"" more "}},"                        \
	"\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"2\"}}}"
#define PRODUCT "nvidia.com/gpu.product"
/* Labels as NVIDIA's GPU Feature Discovery sets them, and resources of its device plugin. */
#define MIXED                                                                                      \
	"{\"metadata\":{\"labels\":{\"nvidia.com/mig.strategy\":\"mixed\","                        \
	"\"" PRODUCT "\":\"NVIDIA-H100-80GB-HBM3\",\"nvidia.com/gpu.memory\":\"81559\","           \
	"\"nvidia.com/mig-3g.40gb.product\":\"NVIDIA-H100-80GB-HBM3-MIG-3g.40gb\","                \
	"\"nvidia.com/mig-3g.40gb.memory\":\"40448\","                                             \
	"\"nvidia.com/mig-1g.10gb.me.product\":\"NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.me\"}},"        \
	"\"status\":{\"allocatable\":{\"cpu\":\"8\",\"nvidia.com/gpu\":\"1\","                     \
	"\"nvidia.com/mig-3g.40gb\":\"1\",\"nvidia.com/mig-1g.10gb.me\":\"2\","                    \
	"\"nvidia.com/mig-2g.20gb\":\"0\",\"nvidia.com/mig-4g.40gb.shared\":\"4\"}}}"

static const struct {
	const char *name, *nodes, *wish;
	int vram_gb;
	const char *gpu, *id; /* NULL: no offer */
} cards[] = {
	{"as NVIDIA's labels have it", CARD(PRODUCT, "NVIDIA-L40S", ""), "L40S", 40, "L40S",
	 PRODUCT "=NVIDIA-L40S"},
	{"two spellings of one card",
	 CARD(PRODUCT, "NVIDIA-L40S", "") "," CARD(PRODUCT, "L40S", ""), "L40S", 0, "L40S",
	 PRODUCT "=NVIDIA-L40S,L40S"},
	{"GKE's A100 has 40 GB", CARD("cloud.google.com/gke-accelerator", "nvidia-tesla-a100", ""),
	 "A100", 80, NULL, NULL},
	{"GKE's A100 in parts is no A100",
	 CARD("cloud.google.com/gke-accelerator", "nvidia-tesla-a100",
	      ",\"cloud.google.com/gke-gpu-partition-size\":\"1g.5gb\""),
	 "A100", 0, NULL, NULL},
	{"GKE's part of an A100",
	 CARD("cloud.google.com/gke-accelerator", "nvidia-tesla-a100",
	      ",\"cloud.google.com/gke-gpu-partition-size\":\"1g.5gb\""),
	 "A100 MIG 1g.5gb", 5, "A100 40GB MIG 1g.5gb",
	 "cloud.google.com/gke-accelerator=nvidia-tesla-a100 1g.5gb"},
	{"GKE's shared card is none",
	 CARD("cloud.google.com/gke-accelerator", "nvidia-l4",
	      ",\"cloud.google.com/gke-gpu-sharing-strategy\":\"time-sharing\""),
	 "L4", 0, NULL, NULL},
	{"GKE's A100 with 80 GB", CARD("cloud.google.com/gke-accelerator", "nvidia-a100-80gb", ""),
	 "A100", 80, "A100 80GB SXM", "cloud.google.com/gke-accelerator=nvidia-a100-80gb"},
	{"Karpenter's a100 says its memory",
	 CARD("karpenter.k8s.aws/instance-gpu-name", "a100",
	      ",\"karpenter.k8s.aws/instance-gpu-memory\":\"40960\""),
	 "A100", 0, "A100 40GB", "karpenter.k8s.aws/instance-gpu-name=a100"},
	{"Karpenter's a100 without memory is the small one",
	 CARD("karpenter.k8s.aws/instance-gpu-name", "a100", ""), "A100", 80, NULL, NULL},
	{"a shared card is none", CARD(PRODUCT, "NVIDIA-L40S-SHARED", ""), "L40S", 0, NULL, NULL},
	{"a slice is not its card", CARD(PRODUCT, "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", ""), "A100",
	 0, NULL, NULL},
	{"slices of one kind (strategy single)",
	 CARD(PRODUCT, "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", ",\"nvidia.com/gpu.memory\":\"4864\""),
	 "A100 MIG 1g.5gb", 5, "A100 40GB MIG 1g.5gb", PRODUCT "=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"},
	{"a slice with its memory", CARD(PRODUCT, "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", ""),
	 "A100 MIG 1g.5gb", 6, NULL, NULL},
	{"slices of a card that the catalogue lacks", CARD(PRODUCT, "NVIDIA-H20-MIG-1g.12gb", ""),
	 "NVIDIA-H20-MIG-1g.12gb", 12, "NVIDIA-H20-MIG-1g.12gb", PRODUCT "=NVIDIA-H20-MIG-1g.12gb"},
	{"such a slice is no larger than its name", CARD(PRODUCT, "NVIDIA-H20-MIG-1g.12gb", ""),
	 "NVIDIA-H20-MIG-1g.12gb", 13, NULL, NULL},
	{"slices that are shared", CARD(PRODUCT, "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", ""),
	 "A100 MIG 1g.5gb", 0, NULL, NULL},
	{"slices that do not suit the strategy",
	 CARD(PRODUCT, "NVIDIA-A100-SXM4-40GB-MIG-INVALID", ""),
	 "NVIDIA-A100-SXM4-40GB-MIG-INVALID", 0, NULL, NULL},
	{"slices of several kinds (strategy mixed)", MIXED, "H100 MIG 3g.40gb", 40,
	 "H100 SXM MIG 3g.40gb",
	 "nvidia.com/mig-3g.40gb.product=NVIDIA-H100-80GB-HBM3-MIG-3g.40gb nvidia.com/mig-3g.40gb"},
	{"the smaller ones, two of them", MIXED, "H100 MIG 1g.10gb:2", 10, "H100 SXM MIG 1g.10gb",
	 "nvidia.com/mig-1g.10gb.me.product=NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.me "
	 "nvidia.com/mig-1g.10gb.me"},
	{"more than there are", MIXED, "H100 MIG 1g.10gb:3", 0, NULL, NULL},
	{"none of a kind", MIXED, "H100 MIG 2g.20gb", 0, NULL, NULL},
	{"shared ones under a name of their own", MIXED, "H100 MIG 4g.40gb", 0, NULL, NULL},
	{"the whole cards beside them", MIXED, "H100", 0, "H100 SXM",
	 PRODUCT "=NVIDIA-H100-80GB-HBM3"},
	{"slices whose card another label names",
	 "{\"metadata\":{\"labels\":{\"karpenter.k8s.aws/instance-gpu-name\":\"a100\","
	 "\"karpenter.k8s.aws/instance-gpu-memory\":\"81920\"}},\"status\":{\"allocatable\":{"
	 "\"nvidia.com/mig-1g.10gb\":\"7\"}}}",
	 "A100 MIG 1g.10gb", 10, "A100 80GB SXM MIG 1g.10gb",
	 "karpenter.k8s.aws/instance-gpu-name=a100 nvidia.com/mig-1g.10gb"},
	{"slices of a card that no label names",
	 "{\"metadata\":{},\"status\":{\"allocatable\":{\"nvidia.com/mig-1g.10gb\":\"7\"}}}",
	 "A100 MIG 1g.10gb", 0, NULL, NULL},
	{"labels that no cluster can have", CARD(PRODUCT, "L40S foo=bar", ""), "L40S foo=bar", 0,
	 NULL, NULL},
	{"another card", CARD(PRODUCT, "NVIDIA-L4", ""), "L40S", 0, NULL, NULL},
	{"two cards of one node", CARD(PRODUCT, "NVIDIA-L40S", ""), "L40S:2", 0, "L40S",
	 PRODUCT "=NVIDIA-L40S"},
	{"more than a node has", CARD(PRODUCT, "NVIDIA-L40S", ""), "L40S:4", 0, NULL, NULL},
	{"a taint that is not tolerated",
	 "{\"metadata\":{\"labels\":{\"" PRODUCT "\":\"NVIDIA-L40S\"}},\"spec\":{\"taints\":[{"
	 "\"key\":\"team\",\"value\":\"x\",\"effect\":\"NoSchedule\"}]},\"status\":{"
	 "\"allocatable\":{\"nvidia.com/gpu\":\"2\"}}}",
	 "L40S", 0, NULL, NULL},
};

static void take_nodes(struct op *op, const char *list)
{
	struct reply reply = {0};
	struct err err;

	str_add(&reply.body, list);
	assert_int_equal(kube_nodes_take(op, &reply, false, &err), 0);
	reply_free(&reply);
}

static void test_cards(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cards); i++) {
		const char *const wishes[] = {cards[i].wish, NULL};
		const struct op_want want = {
			.offers = {.gpus = wishes, .vram_gb = cards[i].vram_gb}};
		struct op op = {.provider = provider, .kind = OP_OFFERS, .want = &want};
		CLEANUP(free_text) char *text = xasprintf("{\"items\":[%s]}", cards[i].nodes);
		struct op_result result = {0};
		take_nodes(&op, text);
		kube_read_offers(&op, true, &result);
		const char *gpu = result.offer_count ? result.offers[0].gpu : "nothing",
			   *id = result.offer_count ? result.offers[0].id : "";
		if (strcmp(gpu, cards[i].gpu ? cards[i].gpu : "nothing") != 0 ||
		    (cards[i].id && strcmp(id, cards[i].id) != 0))
			fail_msg("%s: %s (%s)", cards[i].name, gpu, id);
		if (!cards[i].gpu && !strstr(str_text(&result.text), "no node"))
			fail_msg("%s: nothing is said", cards[i].name);
		op_result_free(&result);
		op_result_free(&op.found);
	}
}

/* What a pod asks for, and of which nodes, for an id of each kind. */
static void test_pods_for_an_id(void **state)
{
	static const struct {
		const char *id, *resource, *expressions; /* NULL: no affinity */
	} ids[] = {
		{"any", "nvidia.com/gpu", NULL},
		{PRODUCT "=NVIDIA-L40S,L40S", "nvidia.com/gpu",
		 "[{\"key\":\"" PRODUCT "\",\"operator\":\"In\",\"values\":[\"NVIDIA-L40S\","
		 "\"L40S\"]}]"},
		{"nvidia.com/mig-1g.10gb.product=X-MIG-1g.10gb nvidia.com/mig-1g.10gb",
		 "nvidia.com/mig-1g.10gb",
		 "[{\"key\":\"nvidia.com/mig-1g.10gb.product\",\"operator\":\"In\",\"values\":["
		 "\"X-MIG-1g.10gb\"]}]"},
		{"cloud.google.com/gke-accelerator=nvidia-tesla-a100 1g.5gb", "nvidia.com/gpu",
		 "[{\"key\":\"cloud.google.com/gke-accelerator\",\"operator\":\"In\",\"values\":["
		 "\"nvidia-tesla-a100\"]},{\"key\":\"cloud.google.com/gke-gpu-partition-size\","
		 "\"operator\":\"In\",\"values\":[\"1g.5gb\"]},{\"key\":"
		 "\"cloud.google.com/gke-gpu-sharing-strategy\",\"operator\":\"DoesNotExist\"}]"},
		/* a pod for a whole card must not get a part of one */
		{"cloud.google.com/gke-accelerator=nvidia-l4", "nvidia.com/gpu",
		 "[{\"key\":\"cloud.google.com/gke-accelerator\",\"operator\":\"In\",\"values\":["
		 "\"nvidia-l4\"]},{\"key\":\"cloud.google.com/gke-gpu-partition-size\","
		 "\"operator\":\"DoesNotExist\"},{\"key\":"
		 "\"cloud.google.com/gke-gpu-sharing-strategy\",\"operator\":\"DoesNotExist\"}]"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		CLEANUP(json_decref) json_t *affinity = kube_affinity(ids[i].id);
		const json_t *at = json_object_get(affinity, "nodeAffinity");
		at = json_object_get(at, "requiredDuringSchedulingIgnoredDuringExecution");
		at = json_array_get(json_object_get(at, "nodeSelectorTerms"), 0);
		CLEANUP(free_text)
		char *line = at ? jsonx_line(json_object_get(at, "matchExpressions")) : NULL;
		assert_string_equal(kube_resource_of(ids[i].id), ids[i].resource);
		if (!line != !ids[i].expressions || (line && strcmp(line, ids[i].expressions)))
			fail_msg("%s: %s", ids[i].id, line ? line : "nothing");
	}
}

static void test_cards_of_the_config(void **state)
{
	static const char *const wishes[] = {"B200", NULL};
	const struct op_want want = {.offers.gpus = wishes};
	struct op op = {.provider = provider, .kind = OP_OFFERS, .want = &want};
	struct op_result result = {0};

	(void)state;
	kube_read_offers(&op, false, &result); /* nodes may not be listed */
	assert_int_equal(result.offer_count, 1);
	assert_string_equal(result.offers[0].id, "any");
	assert_int_equal(result.offers[0].price_microusd_h, 5000000);
	op_result_free(&result);
}

/* ---- failures of kubectl ---- */

static const struct {
	const char *said;
	enum op_kind kind;
	enum err_kind want;
} failures[] = {
	{"Error from server (NotFound): pods \"x\" not found", OP_LOGS, ERR_NOT_FOUND},
	{"Error from server (NotFound): namespaces \"x\" not found", OP_RENT, ERR_CONFIG},
	{"error: context \"nosuch\" does not exist", OP_LIST, ERR_CONFIG},
	{"error: You must be logged in to the server (Unauthorized)", OP_LIST, ERR_CREDENTIALS},
	{"Error from server (Forbidden): pods is forbidden: User \"weak\" cannot list resource "
	 "\"pods\" in API group \"\" in the namespace \"default\"",
	 OP_LIST, ERR_CREDENTIALS},
	{"Error from server (Forbidden): pods \"x\" is forbidden: exceeded quota: q, requested: "
	 "pods=1, used: pods=1, limited: pods=1",
	 OP_RENT, ERR_NO_CAPACITY},
	{"Error from server (Forbidden): pods \"x\" is forbidden: violates PodSecurity", OP_RENT,
	 ERR_REFUSED},
	{"Error from server (TooManyRequests): slow down", OP_RENT, ERR_RATE_LIMITED},
	{"Error from server (InternalError): etcdserver: leader changed", OP_RENT, ERR_AMBIGUOUS},
	{"Error from server (InternalError): etcdserver: leader changed", OP_LIST, ERR_TRANSIENT},
	{"Unable to connect to the server: EOF", OP_RENT, ERR_AMBIGUOUS},
	{"Unable to connect to the server: EOF", OP_LIST, ERR_TRANSIENT},
	{"The connection to the server 127.0.0.1:1 was refused - did you specify the right host or "
	 "port?",
	 OP_RENT, ERR_NETWORK},
	{"Unable to connect to the server: dial tcp: lookup x on 10.0.0.1:53: no such host",
	 OP_RENT, ERR_NETWORK},
	{"Unable to connect to the server: getting credentials: exec: executable aws failed with "
	 "exit code 255",
	 OP_LIST, ERR_CREDENTIALS},
};

static void test_failures(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
		struct op op = {.provider = provider, .kind = failures[i].kind};
		struct reply reply = {.status = 1};
		struct err err = {0};
		str_add(&reply.head, failures[i].said);
		(void)kube_failed(&op, &reply, &err);
		reply_free(&reply);
		if (err.kind != failures[i].want)
			fail_msg("%s: %s (%s)", failures[i].said, err_kind_name(err.kind), err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_what_is_read_back),
		cmocka_unit_test(test_what_is_no_pod),
		cmocka_unit_test(test_lists),
		cmocka_unit_test_setup_teardown(test_no_secret_in_the_spec, open_provider,
						close_provider),
		cmocka_unit_test_setup_teardown(test_placement, open_provider, close_provider),
		cmocka_unit_test_setup_teardown(test_cards, open_provider, close_provider),
		cmocka_unit_test(test_pods_for_an_id),
		cmocka_unit_test_setup_teardown(test_cards_of_the_config, open_provider,
						close_provider),
		cmocka_unit_test_setup_teardown(test_failures, open_provider, close_provider),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
