/* git.h - asks the program git. What a git around us has set for its own children (in a hook:
 * GIT_DIR and its kin) does not reach it, and it never asks a question on the terminal. */
#ifndef BURST_UNATTENDED_GIT_H
#define BURST_UNATTENDED_GIT_H

#include "base/err.h"
#include "base/str.h"

enum { GIT_ID = 65 }; /* room for a commit's full name: 40 or 64 hex digits */

/* Runs `git -C DIR WORDS...` (NULL-terminated) for at most ten minutes. Its exit status; above 0
 * *err has what git complained of (ERR_LOCAL). -1: it did not run to its end. out (NULL: dropped):
 * its stdout. */
int git_call(const char *dir, struct str *out, struct err *err, const char *const *words);
/* The same, with an index of its own: a file that need not be there. */
int git_call_with_index(const char *dir, const char *index, struct str *out, struct err *err,
			const char *const *words);
#define GIT(dir, out, err, ...) git_call(dir, out, err, (const char *const[]){__VA_ARGS__, NULL})

/* Takes what a git around us has set out of our own environment. */
void git_leave(void);

/* Where a folder is, as git sees it. All paths are real. */
struct git_place {
	char *top;    /* the working tree's folder; NULL: there is none (a bare repository) */
	char *dir;    /* git's own folder for this working tree */
	char *common; /* what all working trees of the repository share; the same in most */
	char *hooks;  /* where git looks for hooks, core.hooksPath included; need not be there */
};
/* ERR_CONFIG: it lies in no repository, or git refuses it; ERR_LOCAL: there is no git. Free with
 * git_place_free(). */
int git_find(struct git_place *out, const char *dir, struct err *err);
/* The deepest folder of this path that is there, for git to run in: a working tree may lack what a
 * commit has. To be freed. */
char *git_folder(const char *path);
void git_place_free(struct git_place *p);

/* The full name of a commit ("HEAD", "main", a short name). ERR_CONFIG: there is none. */
int git_commit_id(const char *dir, const char *name, char id[GIT_ID], struct err *err);

static inline void git_place_free_cleanup(struct git_place *p)
{
	git_place_free(p);
}

#endif
