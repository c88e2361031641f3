/* ssh_bed.h - a real sshd on loopback, a relay before it, and sessions with commands. */
#ifndef BURST_TESTS_SSH_BED_H
#define BURST_TESTS_SSH_BED_H

#include "net_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/str.h"
#include "net/ssh.h"
#include "scratch.h"

extern char ssh_dir[FOLDER_MAX];
extern int sshd_port;
extern char *host_key, *private_key, *wrong_key, *user;
extern struct loop *ssh_loop;
char *read_ssh_file(const char *name);
/* more: lines for its configuration. Its pid. */
pid_t start_sshd(const char *more, int *port);
int start_ssh_bed(void **state);
int end_ssh_bed(void **state);

/* Skips the test on a machine without sshd. */
void need_sshd(void);

struct relay {
	int listener, port, target_port;
	size_t chunk;            /* bytes at a time */
	long down_most, up_most; /* cut (or freeze) after so many; -1: never */
	bool freeze;
	atomic_int turns;   /* changes of direction */
	atomic_int hold_ms; /* the next bytes of the server come so much later, once */
	atomic_int stop;
	pthread_t thread;
};

void relay_start(struct relay *r);
void relay_end(struct relay *r);

struct session {
	struct ssh *ssh;
	int ups, losses;
	struct err err;
};

void on_session_lost(void *ctx, const struct err *err);
struct ssh *open_with(struct session *s, int port, const char *host, const char *key,
		      int64_t deadline_ms, int64_t silence_ms);
struct ssh *open_up(struct session *s, int port);

struct command {
	struct ssh_channel *channel;
	struct str out, errs;
	size_t got; /* of stdout */
	bool discard;
	size_t to_send, sent; /* from `data` */
	const char *data;
	bool compare, no_end;
	size_t pause_at;
	int closed, code;
	char signal[24];
	struct err err;
};

void run_command(struct ssh *ssh, struct command *c, const char *command);
void free_command(struct command *c);
char *load_data(size_t *len);

#endif
