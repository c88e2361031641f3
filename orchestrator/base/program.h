/* program.h - runs a program of this machine to its end and keeps what it prints: git, crontab,
 * systemctl, ffmpeg. The program gets no shell, none of our keys, and only descriptors 0, 1 and 2.
 * These functions block: not for threads that serve a loop (see net/child.h). */
#ifndef BURST_BASE_PROGRAM_H
#define BURST_BASE_PROGRAM_H

#include <signal.h>
#include <sys/types.h>

#include "err.h"
#include "str.h"

struct program {
	const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH */
	const char *input;       /* text for its stdin; NULL: see input_fd */
	int input_fd;            /* its stdin, read from its offset on; 0: an empty stdin */
	int output_fd;           /* its stdout and stderr; 0: kept, see program_run() */
	const char *folder;      /* where the program starts; NULL: see folder_fd */
	int folder_fd;           /* the same as a descriptor; 0: our own folder */
	char **environment;      /* NULL-terminated; NULL: ours without our keys */
	/* After this time, or when a signal ends us, the program and all that it has started are
	 * killed. The program has a process group of its own, so a terminal's Ctrl-C reaches it
	 * through us alone. Processes that it leaves behind when it ends in time live on. 0: no
	 * limit, and the program shares our group. */
	int64_t limit_ms;
	/* Without a limit: the program has its own group and gets the signals sent to us. */
	bool forwards;
	/* The program may take long. It has its own group and is killed, as with a limit, by a
	 * signal to us, by program_end_long() and, on Linux, whenever this process ends. */
	bool is_long;
	/* The program may ask a person: it has our stdin, stderr and, meanwhile, the terminal. */
	bool prompts;
};

/* Returns the program's exit status, 128 + the signal that ended it, or -1: ERR_NOT_FOUND (no such
 * program), ERR_LOCAL (not started), ERR_TRANSIENT (killed at limit_ms), ERR_INTERRUPTED (a signal
 * to us ended the program; this process ends by that signal too if nothing handles it). Appends
 * stdout to *out and stderr to *said (NULL: dropped); each may have a max. */
int program_run(const struct program *p, struct str *out, struct str *said, struct err *err);
/* The same, but returns only 0 or -1: another exit status is ERR_LOCAL with the last line of the
 * program's stderr. */
int program_must(const struct program *p, struct str *out, struct str *said, struct err *err);
/* Waits for a child of ours and reaps it; returns its wait status. *passed_to, the process that a
 * signal handler forwards signals to, becomes 0 before the child's number is free for reuse. */
int program_reap(pid_t pid, volatile sig_atomic_t *passed_to);
/* Ends the long programs of all threads, and each that begins later, as if this signal had ended
 * them. */
void program_end_long(int number);
/* A program's path in PATH; a name with a slash is a path. NULL: none. The caller frees it. */
char *program_path(const char *name);
bool program_exists(const char *name);

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
	int terminal;      /* the program's group becomes its foreground group; 0: none */
};

/* Starts a program and waits for its exec, at most within_ms (-1: no limit). Returns 0, or an errno
 * and no child is left; after ETIMEDOUT the child is killed, but may remain a zombie. */
int program_spawn(const struct spawn *s, int64_t within_ms, pid_t *out);
/* Makes a pipe for a file of a program: theirs is its stdin (input) or an output of it. Both ends
 * are above 2 and close-on-exec. -1 and errno: an end that was not made is -1. */
int program_pipe(bool input, int *ours, int *theirs);
/* The same of a socket pair: ours does not block, theirs becomes its stdin and its stdout. */
int program_socket(int *ours, int *theirs);
/* Opens a file to be a program's stdin: above 2, close-on-exec. -1 and errno. */
int program_input(const char *path);

/* In a forked child that becomes a background client: gives it its own session, the root as its
 * folder, /dev/null as stdin, and the log as stdout and stderr (-1: /dev/null). Exits 127 if it
 * cannot leave its folder. */
void program_to_background(int log);

#endif
