/* program.h - runs a program of this machine to its end and keeps what it prints: git, crontab,
 * systemctl, ffmpeg. Without a shell, without our keys, with no descriptor of ours but its own
 * three. It blocks: not for threads that serve a loop (see net/child.h). */
#ifndef BURST_BASE_PROGRAM_H
#define BURST_BASE_PROGRAM_H

#include <signal.h>
#include <sys/types.h>

#include "err.h"
#include "str.h"

struct program {
	const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH */
	const char *input;       /* text for its stdin; NULL: see input_fd */
	int input_fd;            /* its stdin, read from where it stands; 0: an empty one */
	/* its stdout and stderr, which are not kept then; 0: see program_run() */
	int output_fd;
	const char *folder; /* it begins there; NULL: see folder_fd */
	int folder_fd;      /* the same, open; 0: our own folder */
	char **environment; /* NULL-terminated; NULL: ours without our keys */
	/* It and all that it has started are killed then, or when a signal ends us meanwhile; a
	 * group of its own, so a terminal's Ctrl-C reaches it through us alone. What it leaves
	 * behind when it ends in time lives on. 0: no limit, and it shares our group. */
	int64_t limit_ms;
	/* Without a limit: signals to us go to it, in a group of its own, and its end is waited for
	 * all the same. */
	bool forwards;
	/* It may take long: a group of its own, as with a limit, ended by a signal to us, by
	 * program_end_long() and, on Linux, when we end, however that is. */
	bool is_long;
	/* It may ask a person: it has our stdin, our stderr and, while it runs, the terminal. */
	bool prompts;
};

/* Returns its exit status, 128 + the signal that ended it, or -1: ERR_NOT_FOUND (no such program),
 * ERR_LOCAL (it could not be started), ERR_TRANSIENT (it was killed at limit_ms), ERR_INTERRUPTED
 * (a signal to us ended it; we end by that signal if nothing handles it). Appends stdout to
 * *out and stderr to *said (NULL: dropped); each may have a max. */
int program_run(const struct program *p, struct str *out, struct str *said, struct err *err);
/* The same, but every exit status except 0 is ERR_LOCAL with the last line that the program
 * printed. */
int program_must(const struct program *p, struct str *out, struct str *said, struct err *err);
/* Waits for a child of ours and reaps it; returns its wait status. A handler of ours passes signals
 * on to *passed_to: that is 0 before the child's number is free for another process. */
int program_reap(pid_t pid, volatile sig_atomic_t *passed_to);
/* Ends the long programs of all threads, and each that begins later, as if this signal had ended
 * them. */
void program_end_long(int number);
/* Where PATH has it; a name with a slash stands for itself. NULL: no such program. The caller frees
 * it. */
char *program_path(const char *name);
bool program_found(const char *name);

/* ---- start ---- */

struct spawn {
	const char *program; /* its path, or a name that PATH has */
	char *const *argv;
	char **environment;
	int files[3];       /* its stdin, stdout and stderr; each above 2 */
	const char *folder; /* as in struct program */
	int folder_fd;
	bool group;        /* a process group of its own */
	bool dies_with_us; /* it is killed when this process dies (Linux) */
	int terminal;      /* that group gets its foreground; 0: none */
};

/* Starts a program and waits until it runs, for at most within_ms (-1: without limit): ETIMEDOUT if
 * it does not, and then it is killed. Returns 0, or an errno and no child is left. */
int program_spawn(const struct spawn *s, int64_t within_ms, pid_t *out);
/* A pipe whose far end becomes a file of a program, its stdin if it is for input. Both ends are
 * close-on-exec and above 2; -1 where there is none. -1 and errno. */
int program_pipe(bool input, int *ours, int *theirs);
/* A file to be its stdin: above 2, close-on-exec. -1 and errno. */
int program_input(const char *path);

/* In a forked child that becomes a background client: gives it its own session, the root as its
 * folder, /dev/null as stdin, and the log as stdout and stderr (-1: /dev/null). Exits 127 if it
 * cannot leave its folder. */
void program_to_background(int log);

#endif
