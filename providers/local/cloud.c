/* cloud.c - the local vendor: one verb per process, which rents, starts, lists and ends pods */
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "vendor.h"
#include "base/clock.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "local.h"
#include "sandbox.h"

/* ---- what several verbs share ---- */

/* Settles pods whose supervisor ended, and returns the number of others without GPUs of their own;
 * -1 and ERR_LOCAL. The caller holds the lock. A pod that cannot be removed still counts; its
 * release reports the reason. */
static int64_t settle_and_count_living(const struct store *store, struct err *err)
{
	CLEANUP(record_free_ids) char **ids = record_living(store, err);
	int64_t living = 0;

	if (!ids)
		return -1;
	for (size_t i = 0; ids[i]; i++) {
		CLEANUP(free_text) char *dir = record_dir(store, ids[i]);
		struct pod_record record;
		(void)pod_settle(store, ids[i], NULL);
		bool has_gpus = record_load(store, ids[i], &record, NULL) == 0 && record.gpus;
		living += path_exists(dir) && !has_gpus;
	}
	return living;
}

/* Splits a pod's output into printable lines: it must not control the terminal. */
static json_t *printable_lines(const struct str *raw)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	const char *at = str_text(raw), *end = at + raw->len, *line;
	size_t len;

	while ((line = bytes_next_line(&at, end, &len))) {
		str_add_printable(&text, line, len, 0);
		str_addc(&text, '\n');
	}
	return json_string(str_text(&text));
}

/* ---- check: whether this machine can run pods, and how it isolates them ---- */

/* Always -1: says how to allow namespaces, or to do without. */
static int fail_no_namespaces(const struct err *why, struct err *err)
{
	const char *settings = geteuid() == 0 ? ""
					      : ", kernel.unprivileged_userns_clone and "
						"kernel.apparmor_restrict_unprivileged_userns";

	return err_set(err, ERR_CONFIG,
		       "pods cannot have namespaces of their own here (%.200s): see the sysctls "
		       "user.max_user_namespaces%s, or a container's "
		       "rights; with isolation = \"process\" among providers.local of your own "
		       "burst.cfg, or LOCAL_ISOLATION=process, jobs "
		       "run as you do, and reach all your files",
		       why->msg, settings);
}

/* sshd needs it for pods that are plain processes. */
static int require_shell(struct err *err)
{
	if (account_has_shell())
		return 0;
	return err_set(err, ERR_CONFIG,
		       "the password file gives the user %s no shell, so sshd refuses all "
		       "logins: chsh -s /bin/sh %s, or isolation = \"namespaces\"",
		       account_name(), account_name());
}

/* *namespaces: the pod gets namespaces, else it is a plain process. ERR_CONFIG: they do not work,
 * and the config does not allow plain processes, whose job may come from a foreign repository. */
static int choose_isolation(const struct store *store, const struct wire_conf *conf,
			    bool *namespaces, struct err *err)
{
	struct err why = {0};

	*namespaces = conf->isolation != ISOLATION_PROCESS &&
		      (conf->sandbox_works || sandbox_probe(store->dir, &why) == 0);
	if (*namespaces)
		return 0;
	return conf->isolation == ISOLATION_NAMESPACES ? fail_no_namespaces(&why, err)
						       : require_shell(err);
}

/* ERR_LOCAL: there is no /proc, which is needed to identify and end processes. */
static int require_proc(struct err *err)
{
	if (access("/proc/self/stat", R_OK) == 0)
		return 0;
	return err_set(err, ERR_LOCAL,
		       "/proc is not mounted here, so local pods could not be ended: mount -t proc "
		       "proc /proc");
}

static void add_shell_finding(struct str *to)
{
	struct err err = {0};

	if (require_shell(&err) < 0)
		str_addf(to, "bad: %s\n", err.msg);
}

static void add_containment_finding(const struct wire_conf *conf, struct str *to)
{
	struct pod_ids ids = {0};

	(void)ids_choose(&ids, NULL);
	str_add(to, "ok: pods are namespaces of their own, with filtered system calls and ");
	if (ids.count)
		str_addf(to, "%u users of their own from %lu on", ids.count,
			 (unsigned long)ids.first);
	else
		str_add(to, "you as their only user");
	str_addf(to, " (%s network)\n", conf->shared_network ? "the machine's" : "private");
	if (conf->shared_network && !lockdown_hides_sockets())
		str_add(to, "warn: with network = \"host\" pods reach abstract sockets of this "
			    "machine's programs (X11, D-Bus), since "
			    "its kernel is older than Linux 6.12 or has no landlock\n");
}

static void add_isolation_finding(const struct store *store, const struct wire_conf *conf,
				  struct str *to)
{
	struct err why = {0}, err = {0};

	if (conf->isolation == ISOLATION_PROCESS) {
		str_add(to, "warn: pods are process groups, as isolation = \"process\" says: they "
			    "share this machine's files and network\n");
		add_shell_finding(to);
	} else if (sandbox_probe(store->dir, &why) == 0)
		add_containment_finding(conf, to);
	else if (conf->isolation == ISOLATION_NAMESPACES) {
		fail_no_namespaces(&why, &err);
		str_addf(to, "bad: %s\n", err.msg);
	} else {
		str_addf(to,
			 "warn: pods are process groups that share this machine's files and "
			 "network, since namespaces do not work here: %s\n",
			 why.msg);
		add_shell_finding(to);
	}
}

static void add_sshd_finding(struct str *to)
{
	static const char *const places[] = {"/usr/sbin/sshd", "/usr/local/sbin/sshd", "/sbin/sshd",
					     "/usr/bin/sshd"};

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], X_OK) == 0) {
			str_addf(to, "ok: sshd is %s\n", places[i]);
			return;
		}
	str_add(to, "bad: no sshd for local pods: install openssh-server\n");
}

static void add_gpu_finding(const struct wire_conf *conf, struct str *to)
{
	glob_t found = {0};

	if (!gpu_is_none(conf->gpu) && glob("/dev/nvidia[0-9]*", 0, NULL, &found) != 0)
		str_addf(to,
			 "warn: gpu = \"%s\", but this machine has no /dev/nvidia*: pods run "
			 "without a GPU\n",
			 conf->gpu);
	globfree(&found);
}

enum { CLOCK_OFF_MOST_MS = 60000, DISK_LITTLE_MIB = 1024, MIB_PER_GIB = 1024 };

/* Refuses a client whose clock differs: the pod's hard end is a time of the client's clock. */
static int check_clock(const struct wire_conf *conf, struct err *err)
{
	int64_t ahead_ms = clock_wall_ms() - conf->client_ms;
	char span[24];

	if (!conf->client_ms || (ahead_ms > -CLOCK_OFF_MOST_MS && ahead_ms < CLOCK_OFF_MOST_MS))
		return 0;
	return err_set(err, ERR_CONFIG, "the clock of this host is %s %s yours: set one of them",
		       duration_show(span, sizeof(span), MAX(ahead_ms, -ahead_ms)),
		       ahead_ms > 0 ? "ahead of" : "behind");
}

/* How pods end with all their processes, beyond their isolation. */
static void add_group_finding(struct str *to)
{
	struct group_kind kind;
	struct err err = {0};

	if (group_try(&kind, &err) == 0)
		str_addf(to,
			 "ok: each pod is a control group of the user's systemd, which ends all of "
			 "it, and %s\n",
			 kind.bounds_memory ? "pod.memory_gb bounds its memory"
					    : "does not bound its memory (systemd may not here)");
	else
		str_addf(to,
			 "%s: pods have no control group, so pod.memory_gb bounds nothing: %s\n",
			 err.kind == ERR_NOT_FOUND ? "ok" : "warn", err.msg);
	if (!kind.works && group_logind_kills())
		str_add(to, "warn: logind ends pods there a minute after the client's last command "
			    "(KillUserProcesses=yes)\n");
}

static void add_cards_finding(struct str *to)
{
	static const char *const words[] = {[CARD_FREE] = "free",
					    [CARD_LOCKED] = "taken by a pod",
					    [CARD_USED] = "in use by another program"};
	CLEANUP(gpus_free) struct card *cards = NULL;
	struct err err = {0};
	size_t count;

	if (gpus_list(&cards, &count, &err) < 0)
		str_addf(to, "warn: no GPU can be used: %s\n", err.msg);
	else if (!count)
		str_add(to, "ok: no nvidia-smi, so no GPU\n");
	for (size_t i = 0; i < count; i++)
		str_addf(to, "ok: GPU %s, %lld GB, %s\n", cards[i].model,
			 (long long)(cards[i].memory_mib + MIB_PER_GIB / 2) / MIB_PER_GIB,
			 words[cards[i].state]);
}

/* What a person would look up on another machine. */
static void add_host_findings(const struct store *store, const struct wire_conf *conf,
			      struct str *to)
{
	struct utsname kind;
	struct statvfs disk;
	struct err err = {0};

	if (uname(&kind) == 0)
		str_addf(to, "ok: %s %s %s\n", kind.sysname, kind.release, kind.machine);
	if (check_clock(conf, &err) < 0)
		str_addf(to, "bad: %s\n", err.msg);
	if (statvfs(store->dir, &disk) == 0) {
		int64_t free_mib = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize >> 20;
		str_addf(to, "%s: %lld MB free in %s\n", free_mib < DISK_LITTLE_MIB ? "warn" : "ok",
			 (long long)free_mib, store->volumes);
	}
	add_group_finding(to);
	add_cards_finding(to);
}

static int do_check(const struct store *store, const json_t *request, json_t *answer,
		    struct err *err)
{
	CLEANUP(fd_close) int lock = -1;
	CLEANUP(str_free) struct str text = STR_INIT;
	struct wire_conf conf;

	wire_read_conf(json_object_get(request, "conf"), &conf);
	struct err why = {0};
	if (require_proc(&why) < 0)
		str_addf(&text, "bad: %s\n", why.msg);
	add_isolation_finding(store, &conf, &text);
	add_sshd_finding(&text);
	if (conf.is_host)
		add_host_findings(store, &conf, &text);
	else
		add_gpu_finding(&conf, &text);
	if (store_lock(store, &lock, err) < 0)
		return -1;
	int64_t living = settle_and_count_living(store, err);
	if (living < 0)
		return -1;
	str_addf(&text, "%s: %lld of %lld pods are taken\n", living < conf.capacity ? "ok" : "warn",
		 (long long)living, (long long)conf.capacity);
	json_object_set_new(answer, "text", printable_lines(&text));
	return 0;
}

/* ---- rent and release ---- */

static int require_free_slot(const struct store *store, const struct wire_conf *conf,
			     struct err *err)
{
	int64_t living = settle_and_count_living(store, err);

	if (living < 0)
		return -1;
	if (living >= conf->capacity)
		return err_set(err, ERR_NO_CAPACITY, "all %lld pods of this machine are taken",
			       (long long)conf->capacity);
	return 0;
}

enum { HOSTNAME_MOST = 63 };

static int check_env(const json_t *env, struct err *err)
{
	const char *name;
	json_t *value;

	if (!json_is_object(env))
		return err_set(err, ERR_REFUSED, "no environment");
	json_object_foreach ((json_t *)env, name, value) {
		if (!json_is_string(value) || !name[0] || strchr(name, '='))
			return err_set(err, ERR_REFUSED,
				       "an environment of names and texts is needed");
	}
	return 0;
}

/* Reads and checks a rent, since names become folders and host names, and the mount path a place in
 * the pod's root. plan borrows from request. */
static int read_rent_request(const struct store *store, const json_t *request,
			     struct pod_record *record, struct pod_plan *plan, struct err *err)
{
	CLEANUP(free_text) char *id = record_id_of_name(jsonx_text(request, "name", ""));
	const char *volume = jsonx_text(request, "volume", "");

	plan->script = jsonx_text(request, "script", NULL);
	plan->env = json_object_get(request, "env");
	plan->mount = jsonx_text(request, "mount", "");
	if (!record_is_id(id) || strlen(id) > HOSTNAME_MOST || ends_with(id, "-"))
		return err_set(err, ERR_REFUSED, "a pod's name must be a valid host name");
	if (!plan->script || check_env(plan->env, err) < 0)
		return err_set(err, ERR_REFUSED,
			       "a start script and an environment of texts are needed");
	if (!plan->mount[0])
		plan->mount = "/workspace";
	if (plan->mount[0] != '/' || !path_is_safe(plan->mount + 1))
		return err_set(err, ERR_REFUSED, "the mount path must be absolute and plain");
	if (volume[0] && volume_ensure(store, volume, VOLUME_MUST_EXIST, err) < 0)
		return -1;
	json_t *named = json_copy((json_t *)request);
	json_object_set_new(named, "id", json_string(id));
	int result = record_from_json(named, record, err);
	json_decref(named);
	if (result < 0)
		err->kind = ERR_REFUSED;
	return result;
}

/* Sets all that the vendor decides, not the client. */
static void fill_record(struct pod_record *record, bool namespaces, int gpus)
{
	struct pod_view *view = &record->view;

	COPY_TEXT(view->host, "127.0.0.1");
	COPY_TEXT(view->user, namespaces ? account_in_pod() : account_name());
	view->preempted = false;
	view->port = 0;
	view->detail[0] = '\0';
	record->created_ms = clock_wall_ms();
	record->started_ms = record->ended_ms = 0;
	record->supervisor = record->init = (struct process){0};
	record->namespaces = namespaces;
	record->gpus = gpus;
}

enum { LOG_TAIL_BYTES = 64 << 10, LAST_WORDS_MOST = 200 };

/* Appends the last LOG_TAIL_BYTES. */
static int read_log_tail(const char *path, struct str *out, struct err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[4096];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_NOT_FOUND, "no log");
	if (st.st_size > LOG_TAIL_BYTES)
		lseek(fd, -LOG_TAIL_BYTES, SEEK_END);
	while (out->len < LOG_TAIL_BYTES && (n = read(fd, buf, sizeof(buf))) > 0)
		str_addn(out, buf, (size_t)n);
	return 0;
}

/* Adds the last line of a pod's log, of one that did not start, to the reason. */
static void add_last_words(const struct store *store, const char *id, struct err *err)
{
	CLEANUP(free_text) char *path = record_path(store, id, "log");
	CLEANUP(str_free) struct str raw = STR_INIT, shown = STR_INIT;
	struct err why = *err;
	size_t len;

	if (read_log_tail(path, &raw, NULL) < 0 || !raw.len)
		return;
	const char *line = str_last_line(&raw, &len);
	str_add_printable(&shown, line, len, LAST_WORDS_MOST);
	err_set(err, why.kind, "%s: %s", why.msg, str_text(&shown));
}

/* Makes the record and starts the pod; after an error neither is left. */
static int create_and_launch(const struct store *store, struct pod_record *record,
			     const struct pod_plan *plan, struct err *err)
{
	CLEANUP(fd_close) int alive = -1;
	CLEANUP(free_text) char *dir = record_dir(store, record->view.id);

	if (record_create(store, record, &alive, err) < 0)
		return -1;
	if (pod_launch(store, record, plan, alive, err) == 0)
		return 0;
	add_last_words(store, record->view.id, err);
	record_remove_tree(dir, NULL);
	return -1;
}

/* Gives the pod the GPUs that the request names by model, or else one of this machine's slots. */
static int claim_place(const struct store *store, struct pod_plan *plan, struct err *err)
{
	const struct wire_conf *conf = plan->conf;

	return conf->model[0] ? gpus_claim(conf->model, conf->gpus, &plan->claim, err)
			      : require_free_slot(store, conf, err);
}

/* A create whose reply was lost is sent again: its pod is the one with the same name and marker.
 * Returns whether it exists; with another marker record_create() refuses the name. */
static bool was_rented(const struct store *store, const struct pod_record *wanted,
		       struct pod_record *out)
{
	const struct marker *marker = &wanted->view.marker;

	return record_load(store, wanted->view.id, out, NULL) == 0 && marker->attempt[0] &&
	       !strcmp(out->view.marker.attempt, marker->attempt) &&
	       !strcmp(out->view.marker.run, marker->run) &&
	       !strcmp(out->view.marker.machine, marker->machine);
}

static int do_rent(const struct store *store, const json_t *request, json_t *answer,
		   struct err *err)
{
	CLEANUP(fd_close) int lock = -1;
	struct wire_conf conf;
	struct pod_record record, before;
	struct pod_plan plan = {.conf = &conf};
	bool namespaces;

	wire_read_conf(json_object_get(request, "conf"), &conf);
	if (require_proc(err) < 0 || check_clock(&conf, err) < 0)
		return -1;
	if (read_rent_request(store, request, &record, &plan, err) < 0)
		return -1;
	if (choose_isolation(store, &conf, &namespaces, err) < 0)
		return -1;
	if (conf.is_host)
		(void)group_try(&plan.group, NULL);
	if (store_lock(store, &lock, err) < 0)
		return -1;
	if (was_rented(store, &record, &before)) {
		json_object_set_new(answer, "pods", json_pack("[o]", record_to_json(&before)));
		return 0;
	}
	if (claim_place(store, &plan, err) < 0)
		return -1;
	fill_record(&record, namespaces, plan.claim.count);
	if (create_and_launch(store, &record, &plan, err) < 0) {
		gpus_unclaim(&plan.claim);
		return -1;
	}
	json_object_set_new(answer, "pods", json_pack("[o]", record_to_json(&record)));
	return 0;
}

static int do_release(const struct store *store, const json_t *request, json_t *answer,
		      struct err *err)
{
	const char *id = jsonx_text(request, "id", "");

	(void)answer;
	return record_is_id(id) ? pod_release(store, id, err) : 0; /* no pod can have such an id */
}

/* ---- list and look up ---- */

enum { REQUEST_BYTES_MAX = 8 << 20 };
#define DAY_MS        INT64_C(86400000)
#define KEEP_MS       (30 * DAY_MS)
#define SHOW_ENDED_MS 600000 /* how long an ended pod stays in the list, as GONE */

/* Adds these pods' records to list. One that retires meanwhile appears among the ended. */
static int add_records(const struct store *store, char **ids, json_t *list, struct err *err)
{
	struct pod_record record;

	for (size_t i = 0; ids[i]; i++) {
		if (record_load(store, ids[i], &record, err) == 0)
			json_array_append_new(list, record_to_json(&record));
		else if (err->kind != ERR_NOT_FOUND)
			return -1;
	}
	return 0;
}

static int do_list(const struct store *store, const json_t *request, json_t *answer,
		   struct err *err)
{
	CLEANUP(fd_close) int lock = -1;
	json_t *list = json_array();

	(void)request;
	json_object_set_new(answer, "pods", list);
	if (store_lock(store, &lock, err) < 0 || settle_and_count_living(store, err) < 0)
		return -1;
	record_prune(store, KEEP_MS);
	CLEANUP(record_free_ids) char **here = record_living(store, err);
	if (!here)
		return -1;
	CLEANUP(record_free_ids) char **gone = record_ended(store, SHOW_ENDED_MS);
	return add_records(store, here, list, err) < 0 ? -1 : add_records(store, gone, list, err);
}

/* Loads the record of request.id, after ending a pod whose supervisor died. If that fails, the
 * record is loaded as it is. ERR_NOT_FOUND. */
static int load_settled(const struct store *store, const json_t *request, struct pod_record *record,
			struct err *err)
{
	const char *id = jsonx_text(request, "id", "");
	CLEANUP(fd_close) int lock = -1;

	if (!record_is_id(id))
		return err_set(err, ERR_NOT_FOUND, "no such pod");
	if (store_lock(store, &lock, err) < 0)
		return -1;
	(void)pod_settle(store, id, NULL);
	return record_load(store, id, record, err);
}

static int do_inspect(const struct store *store, const json_t *request, json_t *answer,
		      struct err *err)
{
	struct pod_record record;

	if (load_settled(store, request, &record, err) < 0)
		return -1;
	json_object_set_new(answer, "pods", json_pack("[o]", record_to_json(&record)));
	return 0;
}

static int do_billing(const struct store *store, const json_t *request, json_t *answer,
		      struct err *err)
{
	struct pod_record record;

	if (load_settled(store, request, &record, err) < 0)
		return -1;
	int64_t until = record.ended_ms ? record.ended_ms : clock_wall_ms();
	int64_t billed = MAX(until - record.created_ms, 0);
	json_object_set_new(answer, "billed_ms", json_integer(billed));
	json_object_set_new(answer, "cost",
			    json_integer(money_for(record.view.price_microusd_h, billed)));
	return 0;
}

/* ---- offers, volumes and logs ---- */

/* Appends {"model","memory_mib","state"} for each GPU of this machine. */
static int add_gpus(json_t *answer, struct err *err)
{
	static const char *const words[] = {
		[CARD_FREE] = "free", [CARD_LOCKED] = "locked", [CARD_USED] = "used"};
	CLEANUP(gpus_free) struct card *cards = NULL;
	json_t *list = json_array();
	size_t count;

	json_object_set_new(answer, "gpus", list);
	if (gpus_list(&cards, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "model", cards[i].model,
						      "memory_mib", (json_int_t)cards[i].memory_mib,
						      "state", words[cards[i].state]));
	return 0;
}

static int do_offers(const struct store *store, const json_t *request, json_t *answer,
		     struct err *err)
{
	CLEANUP(fd_close) int lock = -1;
	struct wire_conf conf;
	struct err why;
	bool namespaces = false;

	wire_read_conf(json_object_get(request, "conf"), &conf);
	/* the rent itself reports other obstacles */
	if (require_proc(&why) == 0 && choose_isolation(store, &conf, &namespaces, err) < 0)
		return -1;
	json_object_set_new(answer, "sandbox_works", json_boolean(namespaces));
	if (conf.is_host && add_gpus(answer, err) < 0)
		return -1;
	if (store_lock(store, &lock, err) < 0)
		return -1;
	int64_t living = settle_and_count_living(store, err);
	if (living < 0)
		return -1;
	json_object_set_new(answer, "left", json_integer(conf.capacity - living));
	return 0;
}

static int do_volume(const struct store *store, const json_t *request, json_t *answer,
		     struct err *err)
{
	const char *name = jsonx_text(request, "name", "");
	bool create = jsonx_bool(request, "create", false);

	if (volume_ensure(store, name, create ? VOLUME_MAKE_MISSING : VOLUME_MUST_EXIST, err) < 0)
		return -1;
	json_object_set_new(answer, "volumes", json_pack("[{s:s}]", "name", name));
	return 0;
}

static int do_volumes(const struct store *store, const json_t *request, json_t *answer,
		      struct err *err)
{
	(void)request;
	(void)err;
	json_object_set_new(answer, "volumes", volume_list(store));
	return 0;
}

static int refuse_if_used(const struct store *store, const char *name, struct err *err)
{
	CLEANUP(record_free_ids) char **ids = record_living(store, err);
	struct pod_record record;

	if (!ids)
		return -1;
	for (size_t i = 0; ids[i]; i++)
		if (record_load(store, ids[i], &record, err) == 0 && !record.ended_ms &&
		    !strcmp(record.volume, name))
			return err_set(err, ERR_REFUSED, "volume %s is in use by pod %s", name,
				       ids[i]);
	return 0;
}

static int do_volume_remove(const struct store *store, const json_t *request, json_t *answer,
			    struct err *err)
{
	const char *name = jsonx_text(request, "id", "");
	CLEANUP(fd_close) int lock = -1;

	(void)answer;
	if (store_lock(store, &lock, err) < 0 || settle_and_count_living(store, err) < 0 ||
	    refuse_if_used(store, name, err) < 0)
		return -1;
	return volume_remove(store, name, err);
}

static int do_volume_ls(const struct store *store, const json_t *request, json_t *answer,
			struct err *err)
{
	json_t *entries;

	if (volume_measure_folder(store, jsonx_text(request, "id", ""),
				  jsonx_text(request, "path", ""), &entries, err) < 0)
		return -1;
	json_object_set_new(answer, "entries", entries);
	return 0;
}

static int do_volume_delete(const struct store *store, const json_t *request, json_t *answer,
			    struct err *err)
{
	(void)answer;
	return volume_delete(store, jsonx_text(request, "id", ""), jsonx_text(request, "path", ""),
			     err);
}

static int do_logs(const struct store *store, const json_t *request, json_t *answer,
		   struct err *err)
{
	const char *id = jsonx_text(request, "id", "");
	CLEANUP(str_free) struct str raw = STR_INIT;

	if (!record_is_id(id))
		return err_set(err, ERR_NOT_FOUND, "no such pod");
	CLEANUP(free_text) char *living = record_path(store, id, "log");
	CLEANUP(free_text) char *ended = record_ended_path(store, id, "log");
	if (read_log_tail(living, &raw, err) < 0 && read_log_tail(ended, &raw, err) < 0)
		return err_wrap(err, "pod %s", id);
	json_object_set_new(answer, "text", printable_lines(&raw));
	return 0;
}

/* ---- the verbs ---- */

/* run fills answer, a JSON object. */
static const struct verb {
	const char *word;
	int (*run)(const struct store *store, const json_t *request, json_t *answer,
		   struct err *err);
} verbs[] = {
	{"check", do_check},
	{"offers", do_offers},
	{"volume", do_volume},
	{"volumes", do_volumes},
	{"rent", do_rent},
	{"volume-remove", do_volume_remove},
	{"inspect", do_inspect},
	{"list", do_list},
	{"release", do_release},
	{"billing", do_billing},
	{"logs", do_logs},
	{"volume-ls", do_volume_ls},
	{"volume-delete", do_volume_delete},
};

/* Reads stdin. NULL with *err: no JSON, or too much. */
static json_t *read_request(struct err *err)
{
	CLEANUP(str_free) struct str text = STR_MAX(REQUEST_BYTES_MAX);
	char buf[65536];
	ssize_t n;

	while ((n = read(STDIN_FILENO, buf, sizeof(buf))) > 0)
		str_addn(&text, buf, (size_t)n);
	if (n < 0 || text.over) {
		err_set(err, ERR_USAGE, "the request cannot be read");
		return NULL;
	}
	return text.len ? jsonx_parse(str_text(&text), text.len, err) : json_object();
}

static int print_answer(FILE *to, const json_t *answer)
{
	CLEANUP(free_text) char *line = jsonx_line(answer);

	return line && fprintf(to, "%s\n", line) > 0 && fflush(to) == 0 ? 0 : -1;
}

/* Prints the error as the last line of stderr, and returns the exit status. */
static int print_error(const struct err *err)
{
	CLEANUP(json_decref) json_t *answer = wire_error_json(err);

	print_answer(stderr, answer);
	return 1;
}

static int64_t number_arg_or_0(int argc, char **argv, int at)
{
	long long number = argc > at ? atoll(argv[at]) : 0;

	return MAX(number, 0);
}

/* Runs stage or fetch, whose arguments local.h lists. Returns the exit status. */
static int run_file_verb(const struct store *store, int argc, char **argv)
{
	bool fetch = !strcmp(argv[1], "fetch");
	struct err err = {0};
	int64_t moved;

	if (argc < (fetch ? 6 : 5)) {
		err_set(&err, ERR_USAGE, "a volume and a path are needed");
		return print_error(&err);
	}
	int result = fetch ? volume_fetch(store, argv[3], argv[4], number_arg_or_0(argc, argv, 5),
					  number_arg_or_0(argc, argv, 6), &moved, &err)
			   : volume_stage(store, argv[3], argv[4], number_arg_or_0(argc, argv, 6),
					  number_arg_or_0(argc, argv, 5), &moved, &err);
	if (result < 0)
		return print_error(&err);
	CLEANUP(json_decref) json_t *answer = json_pack("{s:I}", "bytes", (json_int_t)moved);
	return print_answer(fetch ? stderr : stdout, answer) < 0;
}

/* Runs a verb with a JSON request. Returns the exit status. */
static int run_json_verb(const struct store *store, const char *word)
{
	CLEANUP(json_decref) json_t *answer = json_object();
	struct err err = {0};

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (strcmp(word, verbs[i].word))
			continue;
		CLEANUP(json_decref) json_t *request = read_request(&err);
		if (!request || verbs[i].run(store, request, answer, &err) < 0)
			return print_error(&err);
		return print_answer(stdout, answer) < 0;
	}
	err_set(&err, ERR_USAGE, "no such verb: %s", word);
	return print_error(&err);
}

int local_cloud_main(int argc, char **argv)
{
	struct store store;
	struct err err = {0};

	if (argc < 3) {
		err_set(&err, ERR_USAGE, "local-cloud VERB STATE_DIR: for burst itself");
		return print_error(&err);
	}
	umask(077);
	if (cloud_store_open(&store, argv[2], &err) < 0)
		return print_error(&err);
	int status = !strcmp(argv[1], "stage") || !strcmp(argv[1], "fetch")
			     ? run_file_verb(&store, argc, argv)
			     : run_json_verb(&store, argv[1]);
	cloud_store_close(&store);
	return status;
}
