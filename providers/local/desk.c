/* desk.c - what several verbs of the local vendor share, and whether this machine can run pods */
#include "vendor.h"

#include <glob.h>
#include <unistd.h>

#include "base/gpus.h"
#include "base/path.h"
#include "local.h"
#include "sandbox.h"

/* ---- desk ----
 * What several verbs of the local cloud share. */

int64_t desk_sweep(const struct store *store)
{
	CLEANUP(record_free_ids) char **ids = record_living(store);
	int64_t living = 0;

	for (size_t i = 0; ids[i]; i++) {
		CLEANUP(free_text) char *dir = record_dir(store, ids[i]);
		(void)pod_settle(store, ids[i], NULL);
		living += path_exists(dir);
	}
	return living;
}

json_t *desk_printable_lines(const struct str *raw)
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

/* ---- check ----
 * The checks of `burst doctor`: whether this machine can run pods, and how it isolates them. */

static int no_namespaces(const struct err *why, struct err *err)
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

/* For pods that are plain processes. */
static int need_shell(struct err *err)
{
	if (account_has_shell())
		return 0;
	return err_set(err, ERR_CONFIG,
		       "the password file gives the user %s no shell, so sshd refuses all "
		       "logins: chsh -s /bin/sh %s, or isolation = \"namespaces\"",
		       account_name(), account_name());
}

int desk_choose_isolation(const struct store *store, const struct local_conf *conf,
			  bool *namespaces, struct err *err)
{
	struct err why = {0};

	*namespaces = conf->isolation != ISOLATION_PROCESS &&
		      (conf->sandbox_works || sandbox_probe(store->dir, &why) == 0);
	if (*namespaces)
		return 0;
	return conf->isolation == ISOLATION_NAMESPACES ? no_namespaces(&why, err) : need_shell(err);
}

int desk_need_proc(struct err *err)
{
	if (access("/proc/self/stat", R_OK) == 0)
		return 0;
	return err_set(err, ERR_LOCAL,
		       "/proc is not mounted here, so local pods could not be ended: mount -t proc "
		       "proc /proc");
}

/* If pods are plain processes. */
static void check_shell(struct str *to)
{
	struct err err = {0};

	if (need_shell(&err) < 0)
		str_addf(to, "bad: %s\n", err.msg);
}

static void check_containment(const struct local_conf *conf, struct str *to)
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

static void check_isolation(const struct store *store, const struct local_conf *conf,
			    struct str *to)
{
	struct err why = {0}, err = {0};

	if (conf->isolation == ISOLATION_PROCESS) {
		str_add(to, "warn: pods are process groups, as isolation = \"process\" says: they "
			    "share this machine's files and network\n");
		check_shell(to);
	} else if (sandbox_probe(store->dir, &why) == 0)
		check_containment(conf, to);
	else if (conf->isolation == ISOLATION_NAMESPACES) {
		no_namespaces(&why, &err);
		str_addf(to, "bad: %s\n", err.msg);
	} else {
		str_addf(to,
			 "warn: pods are process groups that share this machine's files and "
			 "network, since namespaces do not work here: %s\n",
			 why.msg);
		check_shell(to);
	}
}

static void check_sshd(struct str *to)
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

static void check_gpu(const struct local_conf *conf, struct str *to)
{
	glob_t found = {0};

	if (!gpu_is_none(conf->gpu) && glob("/dev/nvidia[0-9]*", 0, NULL, &found) != 0)
		str_addf(to,
			 "warn: gpu = \"%s\", but this machine has no /dev/nvidia*: pods run "
			 "without a GPU\n",
			 conf->gpu);
	globfree(&found);
}

int desk_check(const struct store *store, const json_t *request, json_t *answer, struct err *err)
{
	CLEANUP(fd_close) int lock = -1;
	CLEANUP(str_free) struct str text = STR_INIT;
	struct local_conf conf;

	local_wire_read_conf(json_object_get(request, "conf"), &conf);
	struct err why = {0};
	if (desk_need_proc(&why) < 0)
		str_addf(&text, "bad: %s\n", why.msg);
	check_isolation(store, &conf, &text);
	check_sshd(&text);
	check_gpu(&conf, &text);
	if (store_lock(store, &lock, err) < 0)
		return -1;
	int64_t living = desk_sweep(store);
	str_addf(&text, "%s: %lld of %lld pods are taken\n", living < conf.capacity ? "ok" : "warn",
		 (long long)living, (long long)conf.capacity);
	json_object_set_new(answer, "text", desk_printable_lines(&text));
	return 0;
}
