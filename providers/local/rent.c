/* rent.c - rents pods: reads the request, chooses the isolation, starts the pod. Also releases
 * them. */
#include "local.h"

#include "account.h"
#include "base/clock.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "desk.h"
#include "pod.h"

/* Fails the first N rents of this state folder, to test how a job handles a lack of capacity. */
static int fail_on_purpose(const struct store *store, int64_t wanted, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(store->dir, "failed-rents");
	CLEANUP(str_free) struct str text = STR_INIT;
	char number[24];

	if (!wanted)
		return 0;
	(void)path_read(path, 64, &text, NULL);
	long long done = atoll(str_text(&text));
	if (done >= wanted)
		return 0;
	snprintf(number, sizeof(number), "%lld\n", done + 1);
	if (path_write(path, number, strlen(number), 0600, err) < 0)
		return -1;
	return err_set(err, ERR_NO_CAPACITY, "no capacity, as fail_rents says (%lld of %lld)",
		       done + 1, (long long)wanted);
}

static int check_room(const struct store *store, const struct local_conf *conf, struct err *err)
{
	int64_t living = desk_sweep(store);

	if (fail_on_purpose(store, conf->fail_rents, err) < 0)
		return -1;
	if (living >= conf->capacity)
		return err_set(err, ERR_NO_CAPACITY, "all %lld pods of this machine are taken",
			       (long long)conf->capacity);
	return 0;
}

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

/* Reads and checks the request: names become folders and host names, the mount path a place in the
 * pod's root. */
static int read_order(const struct store *store, const json_t *request, struct pod_record *record,
		      struct pod_plan *plan, struct err *err)
{
	CLEANUP(free_text) char *id = record_id(jsonx_text(request, "name", ""));
	const char *volume = jsonx_text(request, "volume", "");

	plan->script = jsonx_text(request, "script", NULL);
	plan->env = json_object_get(request, "env");
	plan->mount = jsonx_text(request, "mount", "");
	if (!record_id_ok(id) || strlen(id) > 63 || ends_with(id, "-"))
		return err_set(err, ERR_REFUSED, "a pod's name must be a valid host name");
	if (!plan->script || check_env(plan->env, err) < 0)
		return err_set(err, ERR_REFUSED,
			       "a start script and an environment of texts are needed");
	if (!plan->mount[0])
		plan->mount = "/workspace";
	if (plan->mount[0] != '/' || !path_is_safe(plan->mount + 1))
		return err_set(err, ERR_REFUSED, "the mount path must be absolute and plain");
	if (volume[0] && volume_ensure(store, volume, false, err) < 0)
		return -1;
	json_t *named = json_copy((json_t *)request);
	json_object_set_new(named, "id", json_string(id));
	int result = record_read(named, record, err);
	json_decref(named);
	if (result < 0)
		err->kind = ERR_REFUSED;
	return result;
}

static void fill_record(struct pod_record *record, const struct local_conf *conf, bool namespaces)
{
	struct pod_view *view = &record->view;

	COPY_TEXT(view->host, "127.0.0.1");
	COPY_TEXT(view->user, namespaces ? account_in_pod() : account_name());
	COPY_TEXT(view->gpu, conf->gpu);
	COPY_TEXT(view->region, conf->region);
	view->preempted = false;
	view->port = 0;
	view->detail[0] = '\0';
	view->price_microusd_h = view->spot ? conf->spot_price_microusd_h : conf->price_microusd_h;
	record->created_ms = clock_wall_ms();
	record->started_ms = record->ended_ms = 0;
	record->supervisor = record->init = (struct process){0};
	record->namespaces = namespaces;
}

static int launch(const struct store *store, struct pod_record *record, const struct pod_plan *plan,
		  struct err *err)
{
	CLEANUP(fd_close) int alive = -1;
	CLEANUP(free_text) char *dir = record_dir(store, record->view.id);

	if (record_create(store, record, &alive, err) < 0)
		return -1;
	if (pod_launch(store, record, plan, alive, err) == 0)
		return 0;
	record_remove_tree(dir, NULL);
	return -1;
}

int desk_rent(const struct store *store, const json_t *request, json_t *answer, struct err *err)
{
	CLEANUP(fd_close) int lock = -1;
	struct local_conf conf;
	struct pod_record record;
	struct pod_plan plan = {.conf = &conf};
	bool namespaces;

	local_wire_read_conf(json_object_get(request, "conf"), &conf);
	if (desk_need_proc(err) < 0)
		return -1;
	if (read_order(store, request, &record, &plan, err) < 0)
		return -1;
	if (record.view.spot && conf.spot_price_microusd_h < 0)
		return err_set(err, ERR_REFUSED, "no spot pods without spot_price_per_hour");
	if (desk_choose_isolation(store, &conf, &namespaces, err) < 0)
		return -1;
	if (store_lock(store, &lock, err) < 0 || check_room(store, &conf, err) < 0)
		return -1;
	fill_record(&record, &conf, namespaces);
	if (launch(store, &record, &plan, err) < 0)
		return -1;
	json_object_set_new(answer, "pods", json_pack("[o]", record_answer(&record)));
	return 0;
}

int desk_release(const struct store *store, const json_t *request, json_t *answer, struct err *err)
{
	const char *id = jsonx_text(request, "id", "");

	(void)answer;
	return record_id_ok(id) ? pod_release(store, id, err) : 0; /* no pod can have such an id */
}
