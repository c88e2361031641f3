/* etc.c - makes the /etc of a pod: what programs need to run, and no secret of this machine. */
#include "etc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "account.h"
#include "base/path.h"

enum { FILE_MOST = 4 << 20, ALL_MOST = 64 << 20, DEPTH_MAX = 8 };

/* Files that programs look up. Excludes world-readable files that may hold passwords or tokens
 * (pip.conf, environment, wgetrc) or identify this machine (machine-id, hostname, fstab). */
static const char *const shown[] = {
	"ImageMagick-6",
	"ImageMagick-7",
	"OpenCL",
	"alternatives",
	"ca-certificates",
	"crypto-policies",
	"debian_version",
	"fonts",
	"gai.conf",
	"glvnd",
	"host.conf",
	"inputrc",
	"java-11-openjdk",
	"java-17-openjdk",
	"java-21-openjdk",
	"ld-musl-aarch64.path",
	"ld-musl-x86_64.path",
	"ld.so.cache",
	"ld.so.conf",
	"ld.so.conf.d",
	"locale.alias",
	"localtime",
	"lsb-release",
	"magic",
	"magic.mime",
	"mime.types",
	"nvidia",
	"openal",
	"os-release",
	"perl",
	"pki/ca-trust",
	"pki/tls/cert.pem",
	"pki/tls/certs",
	"pki/tls/openssl.cnf",
	"protocols",
	"python3",
	"python3.10",
	"python3.11",
	"python3.12",
	"python3.13",
	"python3.9",
	"redhat-release",
	"services",
	"ssl/cert.pem",
	"ssl/certs",
	"ssl/openssl.cnf",
	"static",
	"terminfo",
	"timezone",
	"vulkan",
};

struct copy {
	const struct etc *etc;
	const char *root; /* of the pod */
	int64_t bytes;    /* copied so far */
};

static int failed(struct err *err, const char *what)
{
	return err_set(err, ERR_LOCAL, "%s: %s", what, strerror(errno));
}

static int make_parents(const struct copy *c, const char *to, struct err *err)
{
	CLEANUP(free_text) char *dir = path_dir(to);

	if (path_exists(dir))
		return 0;
	if (make_parents(c, dir, err) < 0)
		return -1;
	return mkdir(dir, 0755) < 0 ? failed(err, dir) : ids_give(c->etc->ids, dir, err);
}

static int write_file(const struct copy *c, const char *to, const char *text, size_t len,
		      struct err *err)
{
	CLEANUP(fd_close)
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0 || fd_write_all(fd, text, len) < 0)
		return failed(err, to);
	return ids_give(c->etc->ids, to, err);
}

/* ---- copies ---- */

static int copy_file(struct copy *c, const char *from, const char *to, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct stat st;

	if (stat(from, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH) ||
	    c->bytes + st.st_size > ALL_MOST)
		return 0;
	if (path_read(from, FILE_MOST, &text, NULL) < 0)
		return 0;
	c->bytes += (int64_t)text.len;
	return write_file(c, to, str_text(&text), text.len, err);
}

/* Keeps a link, since most lead to /usr or elsewhere in /etc. Copies the target if the pod cannot
 * see it. */
static int copy_link(struct copy *c, const char *from, const char *to, struct err *err)
{
	static const char *const seen[] = {"/usr/", "/lib", "/opt/", "/nix/", "/gnu/", "/etc/"};
	CLEANUP(free_text) char *real = realpath(from, NULL);
	char target[1024];

	for (size_t i = 0; real && i < ARRAY_LEN(seen); i++) {
		if (!starts_with(real, seen[i]))
			continue;
		ssize_t n = readlink(from, target, sizeof(target) - 1);
		target[MAX(n, 0)] = '\0';
		return symlink(target, to) < 0 ? failed(err, to) : ids_give(c->etc->ids, to, err);
	}
	return real ? copy_file(c, real, to, err) : 0;
}

static int copy_any(struct copy *c, const char *from, const char *to, int depth, struct err *err);

static int copy_folder(struct copy *c, const char *from, const char *to, int depth, struct err *err)
{
	DIR *dir = opendir(from);
	struct dirent *entry;
	int result = mkdir(to, 0755) < 0 && errno != EEXIST ? failed(err, to)
							    : ids_give(c->etc->ids, to, err);

	while (result == 0 && dir && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		CLEANUP(free_text) char *below = path_join(from, entry->d_name);
		CLEANUP(free_text) char *to_below = path_join(to, entry->d_name);
		result = copy_any(c, below, to_below, depth + 1, err);
	}
	if (dir)
		closedir(dir);
	return result;
}

static int copy_any(struct copy *c, const char *from, const char *to, int depth, struct err *err)
{
	struct stat st;

	if (lstat(from, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode))
		return copy_link(c, from, to, err);
	if (S_ISDIR(st.st_mode) && (st.st_mode & 05) == 05 && depth < DEPTH_MAX)
		return copy_folder(c, from, to, depth, err);
	return S_ISREG(st.st_mode) ? copy_file(c, from, to, err) : 0;
}

static int copy_shown(struct copy *c, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		CLEANUP(free_text) char *from = path_join("/etc", shown[i]);
		CLEANUP(free_text) char *to = xasprintf("%s/etc/%s", c->root, shown[i]);
		struct stat st;
		if (lstat(from, &st) == 0 &&
		    (make_parents(c, to, err) < 0 || copy_any(c, from, to, 0, err) < 0))
			return -1;
	}
	return 0;
}

/* ---- what is made up ---- */

static int put(const struct copy *c, const char *name, const struct str *text, struct err *err)
{
	CLEANUP(free_text) char *to = xasprintf("%s/etc/%s", c->root, name);

	return write_file(c, to, str_text(text), text->len, err);
}

static const char *shell(void)
{
	return access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
}

/* "*" means no password; sshd would treat "!" as a locked account. */
static int put_accounts(const struct copy *c, struct err *err)
{
	CLEANUP(str_free) struct str users = STR_INIT, groups = STR_INIT;
	unsigned last = c->etc->ids->count ? MIN(c->etc->ids->count - 1, 65534u) : 65534u;

	/* programs use the first line with a number */
	str_addf(&users, "root:*:0:0:root:/root:%s\n", shell());
	str_add(&groups, "root:*:0:\n");
	if (c->etc->ids->count) {
		/* sshd gives terminals to the group "tty", and ends the session if it cannot */
		str_add(&groups, "tty:*:5:\n");
	} else {
		str_addf(&users, "%s:*:%ld:%ld::%s:%s\n", account_in_pod(), (long)geteuid(),
			 (long)getegid(), account_home_in_pod(), shell());
		str_addf(&groups, "%s:*:%ld:\n", account_in_pod(), (long)getegid());
	}
	str_addf(&users,
		 "sshd:*:74:%u::/run/sshd:/usr/sbin/nologin\nnobody:*:%u:%u::/nonexistent:/usr/"
		 "sbin/nologin\n",
		 last, last, last);
	str_addf(&groups, "nogroup:*:%u:\n", last);
	return put(c, "passwd", &users, err) < 0 ? -1 : put(c, "group", &groups, err);
}

static int put_names(const struct copy *c, struct err *err)
{
	CLEANUP(str_free)
	struct str hosts = STR_INIT, hostname = STR_INIT, order = STR_INIT, resolver = STR_INIT;

	str_addf(&hosts, "127.0.0.1 localhost %s\n::1 localhost\n", c->etc->hostname);
	str_addf(&hostname, "%s\n", c->etc->hostname);
	str_add(&order, "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: "
			"files\nprotocols: files\n");
	if (c->etc->shared_network) {
		(void)path_read("/etc/hosts", 1 << 20, &hosts, NULL);
		(void)path_read("/etc/resolv.conf", 65536, &resolver, NULL);
	}
	if (put(c, "hosts", &hosts, err) < 0 || put(c, "hostname", &hostname, err) < 0 ||
	    put(c, "nsswitch.conf", &order, err) < 0)
		return -1;
	return put(c, "resolv.conf", &resolver, err);
}

int etc_fill(const struct etc *etc, const char *root, struct err *err)
{
	struct copy c = {.etc = etc, .root = root};

	if (put_accounts(&c, err) < 0 || put_names(&c, err) < 0)
		return -1;
	return copy_shown(&c, err);
}
