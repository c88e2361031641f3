/* test_local_files.c - files of a local volume, sshd inside a pod, and the suite of all providers.
 */
#include "local_pods.h"

#include <sys/stat.h>
#include <unistd.h>

#include "provider_conformance.h"
#include "providers/local/local.h"
#include "scratch.h"

static int move_file(const char *verb, const char *path, const char *a, const char *b,
		     const char *in, struct reply *reply)
{
	char words[7][64];
	char *argv[8] = {words[0], words[1], words[2], words[3], words[4]};

	COPY_TEXT(words[0], "local-cloud");
	COPY_TEXT(words[1], verb);
	COPY_TEXT(words[2], state_dir);
	COPY_TEXT(words[3], "vol");
	COPY_TEXT(words[4], path);
	if (a)
		argv[5] = words[5];
	if (b)
		argv[6] = words[6];
	COPY_TEXT(words[5], a);
	COPY_TEXT(words[6], b);
	*reply = (struct reply){0};
	run_child(argv, in, strlen(in), reply);
	return reply->status;
}

static void files_stay_on_their_volume(void)
{
	static const char *const paths[] = {"../x", "/etc/passwd", "out/passwd",
					    "link", "a/../b",      ""};
	CLEANUP(free_text) char *out = xasprintf("%s/volumes/vol/out", state_dir);
	CLEANUP(free_text) char *file = xasprintf("%s/volumes/vol/link", state_dir);
	struct reply reply;

	assert_int_equal(symlink("/etc", out), 0);
	assert_int_equal(symlink("/etc/passwd", file), 0);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		assert_int_equal(move_file("fetch", paths[i], "0", NULL, "", &reply), 1);
		assert_int_equal(reply.body.len, 0);
		reply_free(&reply);
	}
	assert_int_equal(move_file("stage", "out/passwd-", NULL, NULL, "x", &reply), 1);
	reply_free(&reply);
	assert_int_equal(move_file("stage", "a/b/c", NULL, NULL, "0123456789", &reply), 0);
	assert_string_equal(str_text(&reply.body), "{\"bytes\":10}\n");
	reply_free(&reply);
	assert_int_equal(move_file("stage", "a/b/c", "5", NULL, "0123456789", &reply), 1);
	reply_free(&reply);
	assert_int_equal(move_file("fetch", "a/b/c", "3", "4", "", &reply), 0);
	assert_string_equal(str_text(&reply.body), "3456");
	assert_string_equal(str_text(&reply.head), "{\"bytes\":4}\n");
	reply_free(&reply);
	assert_int_equal(move_file("fetch", "a/none", "0", NULL, "", &reply), 1);
	assert_non_null(strstr(str_text(&reply.head), "not_found"));
	reply_free(&reply);
}

/* A pod may have put links anywhere, and folders that nobody may write. */
static void tidying_follows_no_link(void)
{
	CLEANUP(free_text) char *top = xasprintf("%s/volumes/vol", state_dir);
	CLEANUP(free_text) char *outside = xasprintf("%s/outside", state_dir);
	CLEANUP(free_text) char *kept = xasprintf("%s/kept", outside);
	CLEANUP(free_text) char *link = xasprintf("%s/links", top);
	CLEANUP(free_text) char *inner = xasprintf("%s/runs/r1/out", top);
	CLEANUP(free_text) char *inner_link = xasprintf("%s/away", inner);
	CLEANUP(free_text) char *trash = xasprintf("%s/volumes/.removed-vol", state_dir);
	struct reply reply;
	struct err err = {0};

	assert_int_equal(path_mkdirs(outside, 0755, &err), 0);
	assert_int_equal(path_write(kept, "x", 1, 0644, &err), 0);
	assert_int_equal(move_file("stage", "runs/r1/out/f", NULL, NULL, "x", &reply), 0);
	reply_free(&reply);
	assert_int_equal(symlink(outside, link), 0);
	assert_int_equal(symlink(outside, inner_link), 0);
	assert_int_equal(chmod(inner, 0500), 0);
	CLEANUP(json_decref) json_t *seen = ask("volume-ls", at("runs"));
	const json_t *entry = json_array_get(json_object_get(seen, "entries"), 0);
	assert_string_equal(jsonx_text(entry, "name", ""), "r1");
	/* the file and the link, not what it leads to */
	assert_int_equal(jsonx_int(entry, "files", 0), 2);
	refused("volume-ls", at("links"), "local");
	refused("volume-delete", at("links/kept"), "local");
	refused("volume-delete", at("../vol"), "refused");
	json_decref(ask("volume-delete", at("runs/r1")));
	json_decref(ask("volume-delete", at("links")));
	assert_false(path_exists(inner));
	assert_false(path_exists(link));
	assert_false(path_exists(trash));
	assert_true(path_exists(kept));
	refused("volume-delete", json_pack("{s:s, s:s}", "id", "none", "path", "a/b"), "not_found");
	assert_int_equal(path_remove_tree(outside, &err), 0);
}

static void run_quietly(const char *command, struct str *output)
{
	FILE *f = popen(command, "r");
	char buf[4096];
	size_t n;

	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		str_addn(output, buf, n);
	pclose(f);
}

/* Until sshd says who it is: each try is dropped or refused at once before that. */
static void wait_banner(int port)
{
	int64_t until = clock_boot_ms() + LIMIT_MS;
	char said[8] = "";

	while (memcmp(said, "SSH-2.0", 7)) {
		CLEANUP(fd_close) int fd = connect_to(port);
		if (clock_boot_ms() > until)
			fail_msg("%s: sshd does not answer", kind->name);
		if (fd < 0 || read(fd, said, 7) != 7)
			usleep(1000);
	}
}

#define SSHD_SCRIPT                                                                                \
	"umask 077; mkdir -p \"$BURST_HOME\"; cd \"$BURST_HOME\"; printf '%s\\n' \"$HOST_KEY\" > " \
	"hk; "                                                                                     \
	"printf '%s\\n' \"$AUTH\" > ak; mkdir -p /run/sshd 2>/dev/null; "                          \
	"/usr/sbin/sshd -D -e -f /dev/null -p \"$BURST_SSH_PORT\" -o ListenAddress=127.0.0.1 -h "  \
	"\"$PWD/hk\" "                                                                             \
	"-o AuthorizedKeysFile=\"$PWD/ak\" -o StrictModes=no -o UsePAM=no -o PidFile=none -o "     \
	"PermitRootLogin=yes & "                                                                   \
	"wait"

static char *read_text(const char *path)
{
	struct str text = STR_INIT;
	struct err err;

	if (path_read(path, 1 << 16, &text, &err) < 0)
		fail_msg("%s", err.msg);
	return str_detach(&text);
}

static void put_key(json_t *request, const char *name, const char *path)
{
	CLEANUP(free_text) char *text = read_text(path);

	json_object_set_new(json_object_get(request, "env"), name, json_string(text));
}

/* A user who cannot log in is turned away, but only after the host key was found to be ours:
 * nobody, and root where the machine locks its password and the pod has no /etc of its own. */
static bool answered(const char *said)
{
	bool locked =
		kind->ordinary ? !ordinary_can_log_in : strcmp(kind->isolation, "namespaces") != 0;

	return strstr(said, "pod said") || (locked && strstr(said, "Permission denied"));
}

static void sshd_answers(const char *name, json_t *conf)
{
	CLEANUP(free_text) char *id = xasprintf("local-%s", name + strlen("burst-"));
	/* a process group's terminals are the machine's, which may not be fit for sshd */
	bool apart = !strcmp(kind->isolation, "namespaces");

	char *dir = new_folder();
	char cmd[1024];
	CLEANUP(str_free) struct str output = STR_INIT;
	CLEANUP(str_free) struct str said = STR_INIT;
	snprintf(cmd, sizeof(cmd),
		 "cd %s && ssh-keygen -q -t ed25519 -N '' -f hk && ssh-keygen -q -t ed25519 -N '' "
		 "-f id",
		 dir);
	run_quietly(cmd, &output);
	int64_t began = clock_boot_ms();
	json_t *request = order(name, SSHD_SCRIPT, conf);
	CLEANUP(free_text) char *hk = path_join(dir, "hk");
	CLEANUP(free_text) char *ak = path_join(dir, "id.pub");
	put_key(request, "HOST_KEY", hk);
	put_key(request, "AUTH", ak);
	json_decref(ask("rent", request));
	CLEANUP(json_decref) json_t *pod = wait_state(id, "running");
	int port = (int)jsonx_int(pod, "port", 0);
	snprintf(cmd, sizeof(cmd),
		 "cd %s; echo \"[127.0.0.1]:%d $(cut -d' ' -f1,2 hk.pub)\" > kh; "
		 "ssh %s -F none -p %d -i id -l %s -o IdentitiesOnly=yes -o BatchMode=yes "
		 "-o UserKnownHostsFile=kh -o StrictHostKeyChecking=yes "
		 "127.0.0.1 'tty; echo pod said $HOME; head -c 20000000 /dev/zero | wc -c' 2>&1",
		 dir, port, apart ? "-tt" : "", port, jsonx_text(pod, "user", ""));
	wait_banner(port);
	int64_t banner = clock_boot_ms();
	run_quietly(cmd, &said);
	if (!answered(str_text(&said))) {
		CLEANUP(json_decref) json_t *logs = ask("logs", of(id));
		fail_msg("%s: ssh: %s; the pod: %s", kind->name, str_text(&said),
			 jsonx_text(logs, "text", ""));
	}
	if (strstr(str_text(&said), "pod said") &&
	    (!strstr(str_text(&said), "20000000") ||
	     (apart && !strstr(str_text(&said), "/dev/pts/"))))
		fail_msg("%s: ssh: %s", kind->name, str_text(&said));
	int64_t ready = clock_boot_ms();
	local_pod_release(id);
	print_message(
		"%s: sshd answers %d ms after rent; a login and 20 MB take %d ms; release %d ms\n",
		kind->name, (int)(banner - began), (int)(ready - banner),
		(int)(clock_boot_ms() - ready));
	nothing_remains();
	assert_int_equal(remove_folder(dir), 0);
}

static void sshd_answers_with_our_key(void)
{
	if (access("/usr/sbin/sshd", X_OK) < 0 || access("/usr/bin/ssh-keygen", X_OK) < 0) {
		print_message("skipped: no sshd here\n");
		return;
	}
	sshd_answers("burst-sshd", NULL);
	sshd_answers("burst-sshd-shared", json_pack("{s:b}", "shared_network", 1));
}

enum { FILE_MOST = 64 << 20 };

static void carry(void *ctx, const struct call *call, struct reply *reply)
{
	CLEANUP(str_free) struct str file = STR_INIT;
	const struct str *in = &call->body;
	struct err err;

	(void)ctx;
	assert_string_equal(call->argv[0], "burst");
	if (call->body_from) {
		assert_int_equal(path_read(call->body_from, FILE_MOST, &file, &err), 0);
		in = &file;
	}
	run_child(call->argv + 1, str_text(in), in->len, reply);
	if (call->body_to) {
		assert_int_equal(path_write(call->body_to, str_text(&reply->body), reply->body.len,
					    0600, &err),
				 0);
		str_reset(&reply->body);
	}
}

static void conforms(void)
{
	CLEANUP(section_free) struct section *s = section_new(provider_local.options, "test");
	struct conformance c = {.ops = &provider_local,
				.carry = carry,
				.start_script = STAY,
				.volume = "conformance"};
	struct err err;

	section_set_text(s, "isolation", kind->isolation, "test");
	section_set_text(s, "gpu", "RTX 4090", "test"); /* what the suite wishes for */
	assert_int_equal(provider_local.open(&c.provider, s, state_dir, &err), 0);
	conformance_run(&c);
	provider_local.close(c.provider);
	nothing_remains();
}

int main(void)
{
	static void (*const bodies[])(void) = {
		files_stay_on_their_volume,
		tidying_follows_no_link,
		sshd_answers_with_our_key,
		conforms,
	};

	return local_pods_run(bodies, ARRAY_LEN(bodies));
}
