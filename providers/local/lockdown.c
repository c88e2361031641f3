/* lockdown.c - removes rights that jobs do not need from a pod's first process: capabilities,
 * keyrings, system calls. */
#include "sandbox.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

/* ---- capabilities ---- */

void lockdown_capabilities(void)
{
	/* enough for sshd, chown and package tools */
	static const int kept[] = {
		CAP_CHOWN,      CAP_DAC_OVERRIDE, CAP_FOWNER,  CAP_FSETID,           CAP_KILL,
		CAP_SETGID,     CAP_SETUID,       CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_NET_RAW,
		CAP_SYS_CHROOT, CAP_AUDIT_WRITE,  CAP_SETFCAP};

	for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++) {
		bool keep = false;
		for (size_t i = 0; i < ARRAY_LEN(kept); i++)
			keep = keep || kept[i] == cap;
		if (!keep)
			prctl(PR_CAPBSET_DROP, cap);
	}
}

/* Drops capabilities that container runtimes leave but pods do not need. */
static void drop_beyond_containers(void)
{
	static const int dropped[] = {CAP_NET_RAW, CAP_AUDIT_WRITE, CAP_SETFCAP};

	for (size_t i = 0; i < ARRAY_LEN(dropped); i++)
		prctl(PR_CAPBSET_DROP, dropped[i]);
}

/* ---- system calls ---- */

/* The default profile of container runtimes (moby, podman), without calls that need capabilities
 * which pods lack, that reach young kernel code (io_uring, userfaultfd), or that name mounts. All
 * other calls answer ENOSYS, so that programs and libc fall back as on an older kernel. */
/* clang-format off */
static const char *const allowed[] = {
	"accept", "accept4", "access", "adjtimex", "alarm", "arch_prctl", "bind", "brk", "cachestat", "capget", "capset", "chdir",
	"chmod", "chown", "chroot", "clock_getres", "clock_gettime", "clock_nanosleep", "close", "close_range", "connect",
	"copy_file_range", "creat", "dup", "dup2", "dup3", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old",
	"epoll_pwait", "epoll_pwait2", "epoll_wait", "epoll_wait_old", "eventfd", "eventfd2", "execve", "execveat", "exit",
	"exit_group", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown",
	"fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock", "fork", "fremovexattr", "fsetxattr", "fstat",
	"fstatfs", "fsync", "ftruncate", "futex", "futex_requeue", "futex_wait", "futex_waitv", "futex_wake", "futimesat",
	"get_mempolicy", "get_robust_list", "get_thread_area", "getcpu", "getcwd", "getdents", "getdents64", "getegid", "geteuid",
	"getgid", "getgroups", "getitimer", "getpeername", "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getrandom",
	"getresgid", "getresuid", "getrlimit", "getrusage", "getsid", "getsockname", "getsockopt", "gettid", "gettimeofday",
	"getuid", "getxattr", "getxattrat", "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch", "io_cancel",
	"io_destroy", "io_getevents", "io_pgetevents", "io_setup", "io_submit", "ioctl", "ioprio_get", "ioprio_set", "kcmp", "kill",
	"landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "lchown", "lgetxattr", "link", "linkat", "listen",
	"listxattr", "listxattrat", "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lstat", "madvise", "map_shadow_stack",
	"mbind", "membarrier", "memfd_create", "memfd_secret", "mincore", "mkdir", "mkdirat", "mknod", "mknodat", "mlock", "mlock2",
	"mlockall", "mmap", "modify_ldt", "mprotect", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend",
	"mq_unlink", "mremap", "mseal", "msgctl", "msgget", "msgrcv", "msgsnd", "msync", "munlock", "munlockall", "munmap",
	"nanosleep", "newfstatat", "open", "openat", "openat2", "pause", "pidfd_open", "pidfd_send_signal", "pipe", "pipe2",
	"pkey_alloc", "pkey_free", "pkey_mprotect", "poll", "ppoll", "prctl", "pread64", "preadv", "preadv2", "prlimit64",
	"process_madvise", "process_mrelease", "process_vm_readv", "process_vm_writev", "pselect6", "ptrace", "pwrite64", "pwritev",
	"pwritev2", "read", "readahead", "readlink", "readlinkat", "readv", "recvfrom", "recvmmsg", "recvmsg", "remap_file_pages",
	"removexattr", "removexattrat", "rename", "renameat", "renameat2", "restart_syscall", "riscv_hwprobe", "rmdir", "rseq",
	"rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
	"rt_tgsigqueueinfo", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr",
	"sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_setattr", "sched_setparam",
	"sched_setscheduler", "sched_yield", "seccomp", "select", "semctl", "semget", "semop", "semtimedop", "sendfile", "sendmmsg",
	"sendmsg", "sendto", "set_mempolicy", "set_mempolicy_home_node", "set_robust_list", "set_thread_area", "set_tid_address",
	"setfsgid", "setfsuid", "setgid", "setgroups", "setitimer", "setpgid", "setpriority", "setregid", "setresgid", "setresuid",
	"setreuid", "setrlimit", "setsid", "setsockopt", "setuid", "setxattr", "setxattrat", "shmat", "shmctl", "shmdt", "shmget",
	"shutdown", "sigaltstack", "signalfd", "signalfd4", "socketpair", "splice", "stat", "statfs", "statx", "symlink",
	"symlinkat", "sync", "sync_file_range", "syncfs", "sysinfo", "tee", "tgkill", "time", "timer_create", "timer_delete",
	"timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime", "times",
	"tkill", "truncate", "umask", "uname", "unlink", "unlinkat", "utime", "utimensat", "utimes", "vfork", "vmsplice", "wait4",
	"waitid", "write", "writev",
};

/* Calls that answer EPERM: programs handle a missing permission better than a missing call. */
static const char *const refused[] = {
	"acct", "add_key", "bpf", "clock_adjtime", "clock_settime", "delete_module",
	"fanotify_init", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "init_module",
	"io_uring_enter", "io_uring_register", "io_uring_setup", "ioperm", "iopl",
	"kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "migrate_pages", "mount",
	"mount_setattr", "move_mount", "move_pages", "name_to_handle_at", "open_by_handle_at",
	"open_tree", "perf_event_open", "pidfd_getfd", "pivot_root", "quotactl", "quotactl_fd",
	"reboot", "request_key", "setdomainname", "sethostname", "setns", "settimeofday", "swapoff",
	"swapon", "syslog", "umount", "umount2", "unshare", "userfaultfd", "vhangup",
};
/* clang-format on */

#define LOW_32 UINT32_C(0xffffffff)
/* all CLONE_NEW flags of clone(); CLONE_NEWTIME exists only for clone3() and unshare() */
#define CLONE_NAMESPACES                                                                           \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)
enum { TERMINAL_INPUT = 0x5412 /* TIOCSTI */, CONSOLE = 0x541c /* TIOCLINUX */, FAMILIES = 64 };

/* Always -1. code: a negative errno. */
static int fail_no_filter(struct err *err, int code)
{
	return err_set(err, ERR_LOCAL, "no seccomp filter: %s", strerror(-code));
}

/* Adds the action for each of these calls. 0 or a negative errno, like all that adds rules. */
static int add_rules(scmp_filter_ctx filter, uint32_t action, const char *const *names,
		     size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);
		if (number == __NR_SCMP_ERROR)
			continue; /* newer than this libseccomp, or of another architecture */
		int code = seccomp_rule_add(filter, action, number, 0);
		if (code < 0 && code != -EDOM)
			return code;
	}
	return 0;
}

/* Allows common socket families, harmless personalities, and clone() without namespaces. */
static int allow_by_argument(scmp_filter_ctx filter)
{
	static const uint64_t families[] = {AF_UNIX, AF_INET, AF_INET6};
	static const uint64_t personalities[] = {0x0, 0x8, 0x20000, 0x20008, 0x40000, 0xffffffff};
	int code = 0;

	for (size_t i = 0; code == 0 && i < ARRAY_LEN(families); i++)
		code = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
					SCMP_A0(SCMP_CMP_EQ, families[i]));
	if (code == 0)
		code = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
					SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
					SCMP_A2(SCMP_CMP_EQ, NETLINK_ROUTE));
	for (size_t i = 0; code == 0 && i < ARRAY_LEN(personalities); i++)
		code = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(personality), 1,
					SCMP_A0(SCMP_CMP_EQ, personalities[i]));
	if (code == 0)
		code = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
					SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NAMESPACES, 0));
	return code;
}

/* Fills a second filter with what is refused, since one filter cannot express "all but". The kernel
 * uses the stricter answer of the two. */
static int refuse_by_argument(scmp_filter_ctx filter)
{
	static const int commands[] = {TERMINAL_INPUT, CONSOLE};
	int code = 0;

	/* the kernel compares 32 bits of these, so ignore the others */
	for (size_t i = 0; code == 0 && i < ARRAY_LEN(commands); i++)
		code = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
					SCMP_A1(SCMP_CMP_MASKED_EQ, LOW_32, (uint64_t)commands[i]));
	/* sshd takes only these errors for a missing feature; after others it refuses all logins */
	for (uint64_t family = AF_INET + 1; code == 0 && family < FAMILIES; family++)
		if (family != AF_INET6 && family != AF_NETLINK)
			code = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT),
						SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, family));
	if (code == 0)
		code = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket),
					2, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
					SCMP_A2(SCMP_CMP_GT, NETLINK_ROUTE));
	for (uint64_t flag = 1; code == 0 && flag <= CLONE_NAMESPACES; flag <<= 1)
		if (flag & CLONE_NAMESPACES)
			code = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
						SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag));
	return code == 0 ? add_rules(filter, SCMP_ACT_ERRNO(EPERM), refused, ARRAY_LEN(refused))
			 : code;
}

static int load_filter(scmp_filter_ctx filter)
{
	/* in older kernels a filter turns on mitigations that slow down every computation;
	 * container runtimes skip them too */
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return seccomp_load(filter);
}

static int install_call_filters(struct err *err)
{
	scmp_filter_ctx deny = seccomp_init(SCMP_ACT_ALLOW),
			allow = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int code = deny && allow ? refuse_by_argument(deny) : -ENOMEM;

	if (code == 0)
		code = add_rules(allow, SCMP_ACT_ALLOW, allowed, ARRAY_LEN(allowed));
	if (code == 0)
		code = allow_by_argument(allow);
	/* if both filters refuse, the last one's error counts */
	if (code == 0)
		code = load_filter(allow);
	if (code == 0)
		code = load_filter(deny);
	seccomp_release(deny);
	seccomp_release(allow);
	return code < 0 ? fail_no_filter(err, code) : 0;
}

/* ---- keys and sockets ---- */

enum { JOIN_SESSION_KEYRING = 1 };

/* Leaves the login's session keyring, which its processes share. A kernel without keys has none. */
static void leave_keyring(void)
{
	(void)syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL);
}

/* <linux/landlock.h> of Debian 12 does not know the last field. */
struct ruleset {
	uint64_t files, network, scoped;
};
enum { RULESET_VERSION = 1, VERSION_WITH_SCOPES = 6, SCOPE_SOCKETS_AND_SIGNALS = 3 };
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self  446
#endif

bool lockdown_hides_sockets(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, RULESET_VERSION) >=
	       VERSION_WITH_SCOPES;
}

/* Does nothing on a kernel without this scope of landlock. */
static int hide_abstract_sockets(struct err *err)
{
	struct ruleset rules = {.scoped = SCOPE_SOCKETS_AND_SIGNALS};

	if (!lockdown_hides_sockets())
		return 0;
	CLEANUP(fd_close)
	int fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);
	if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return err_set(err, ERR_LOCAL, "landlock: %s", strerror(errno));
	return 0;
}

/* ---- all of it ---- */

int lockdown_process(struct err *err)
{
	lockdown_capabilities();
	drop_beyond_containers();
	leave_keyring();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, ERR_LOCAL, "no_new_privs: %s", strerror(errno));
	return hide_abstract_sockets(err) < 0 ? -1 : install_call_filters(err);
}
