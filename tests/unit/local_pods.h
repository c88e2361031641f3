/* local_pods.h - real pods of the local provider, as root and as an ordinary user, in namespaces
 * and as process groups. Each pod is a few processes; every wait has a deadline and no test sleeps
 * for a fixed time to be right. */
#ifndef BURST_TESTS_LOCAL_PODS_H
#define BURST_TESTS_LOCAL_PODS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "provider.h"
#include "scratch.h"

enum { LIMIT_MS = 20000 };

/* A kind of pod: who rents it, and what the kernel allows. */
struct kind {
	const char *name;
	bool ordinary; /* as an ordinary user; else as whoever runs the test */
	const char *isolation;
	bool forbidden;  /* the kernel says no to every namespace */
	bool unfiltered; /* it takes no filter of system calls */
};

extern const struct kind *kind; /* of the test that runs now */

extern char state_dir[FOLDER_MAX];

extern char tag[32]; /* an argument that only this test's processes have */

extern int serial;

extern bool ordinary_can_log_in;

int scratch_file(void);

/* The hidden subcommand in a child, as net/ would start it; the reply as net/ would give it. */
void run_child(char *const *argv, const void *in, size_t len, struct reply *reply);

/* Takes the request. */
json_t *ask(const char *verb, json_t *request);

void refused(const char *verb, json_t *request, const char *kind_word);
json_t *of(const char *id);

/* conf: more keys of the provider's section, may be NULL; taken. */
json_t *order(const char *name, const char *script, json_t *conf);

char *rent_pod(const char *script, json_t *conf);
json_t *look(const char *id);

/* Waits for a state; the pod as it is then. */
json_t *wait_state(const char *id, const char *state);

void local_pod_release(const char *id);

/* Processes whose file (cmdline: arguments; mountinfo: what they see mounted) bears our tag; their
 * names into who (may be NULL). */
int count_tagged(const char *file, struct str *who);

void nothing_remains(void);

/* Daemonised twice over: a new session, its parent gone. */
#define DAEMON "(setsid sh -c 'sleep 100000; : '$TAG & ) & "
#define STAY   "sleep 100000; : $TAG"
json_t *at(const char *path);
int connect_to(int port);

/* Runs these bodies with each kind of pod that this machine can have; returns main's result. */
int local_pods_run(void (*const list[])(void), size_t count);

#endif
