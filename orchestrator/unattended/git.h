/* git.h - runs the program git. Removes variables that an outer git sets for its own children (in a
 * hook: GIT_DIR and others), and never lets git prompt on the terminal. */
#ifndef BURST_UNATTENDED_GIT_H
#define BURST_UNATTENDED_GIT_H

#include "base/err.h"
#include "base/str.h"

enum { GIT_ID = 65 }; /* size of a commit's full name: 40 or 64 hex digits */

/* Runs `git -C DIR WORDS...` (NULL-terminated) for at most ten minutes. Returns its exit status;
 * above 0 *err has git's error (ERR_LOCAL). Returns -1 if it did not run to its end. out: its
 * stdout; NULL: dropped. */
int git_call(const char *dir, struct str *out, struct err *err, const char *const *words);
/* The same with its own index: a file that may be missing. */
int git_call_with_index(const char *dir, const char *index, struct str *out, struct err *err,
			const char *const *words);
#define GIT(dir, out, err, ...) git_call(dir, out, err, (const char *const[]){__VA_ARGS__, NULL})

/* Removes an outer git's variables from this process's environment. */
void git_leave(void);

/* A folder's repository as git sees it. All paths are real. */
struct git_place {
	char *top;    /* the working tree's folder; NULL: none (a bare repository) */
	char *dir;    /* git's own folder for this working tree */
	char *common; /* git's folder shared by all working trees of the repository; usually the
			 same */
	char *hooks;  /* folder of hooks, from core.hooksPath too; may be missing */
};
/* ERR_CONFIG: the folder is in no repository, or git refuses it. ERR_LOCAL: git is not installed.
 * Free with git_place_free(). */
int git_find(struct git_place *out, const char *dir, struct err *err);
/* The deepest existing folder of this path, for git to run in: a working tree may lack what a
 * commit has. The caller frees it. */
char *git_folder(const char *path);
void git_place_free(struct git_place *p);

/* Resolves a commit ("HEAD", "main", a short name) to its full name. ERR_CONFIG: there is none. */
int git_commit_id(const char *dir, const char *name, char id[GIT_ID], struct err *err);

static inline void git_place_free_cleanup(struct git_place *p)
{
	git_place_free(p);
}

#endif
