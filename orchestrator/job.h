/* job.h - what to render, as the engine sees it: a list of segments, what a pod needs for them, how
 * a result is checked, and what is left to do when all are local. jobs/ fulfils this; the engine
 * knows no kind of job. */
#ifndef BURST_JOB_H
#define BURST_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/crypto.h"
#include "base/err.h"
#include "base/section.h"
#include "base/str.h"

#define JOB_ABI 20u

/* One piece of a job that gives one output (a command segment gives any number of files). Owned by
 * the job. */
struct segment {
	char *id; /* a safe file name, unique in the job */
	/* what it is: hash of text, voice, engine, parameters; "same key" means "same output" */
	char key[SHA256_HEX];
	double weight;      /* relative size; characters for speech */
	double est_seconds; /* of one worker's time, before anything was measured; 0: no idea */
	char *group;        /* what should stay together in a batch (voice); "" when nothing */
	/* name of its output below the output folder ("q001.wav"); NULL: what the pod reports */
	char *file;
};

/* A file that burst carries inside and every pod of the job needs (a worker program). */
struct job_file {
	const char *name; /* below the kit's folder on the pod */
	const void *data;
	size_t len;
	int mode;
};

/* What an engine is known to take before this ledger has measured it. Zeros: not known. */
struct job_prior {
	/* Seconds of a batch: once_s + longest_s x (weight of its longest segment) + each_s x (sum
	 * of weights). All 0: est_seconds of the segments stand in. */
	double once_s, longest_s, each_s;
	/* the card that these hold for, others by the roofline model; NULL: for all alike */
	const char *gpu;
	/* of longest_s and each_s: what no faster card shortens; 1: cards make no difference */
	double host_share;
	/* GPU memory of one worker: what it always takes, and what each segment of a batch adds */
	double base_gib, each_gib;
	const char *source; /* where the figures are from, with a date; NULL */
};

/* What the pods of this job need. All texts are borrowed from the job. */
struct job_needs {
	const char *engine; /* "espeak", "command": for people, manifests and the cost model */
	bool gpu;           /* a pod that sees no GPU is useless */
	bool bf16;          /* it computes in BF16, which some GPUs lack */
	int vram_gb;
	/* the engine with another model for the same texts and voices, and what that is ("larger:
	 * ..."); NULL: none */
	const char *variant, *variant_is;
	struct job_prior prior;
	/* what of the job its speed depends on beside engine and GPU; NULL: nothing */
	const char *speed_options;
	const char *size_unit; /* command: what weights count ("lines"); NULL: nothing, all are 1 */
	int workers;           /* processes per pod */
	int max_batch;         /* 1: the engine cannot batch (command) */
	bool max_batch_is_cap; /* the user's word: a worker that says more is given no more */
	/* memory model: count x longest weight in a batch must stay below; 0: no limit */
	double max_batch_weight;
	/* segments are shell commands run in a private copy of the tree, not lines for a worker */
	bool command;
	/* command: fetch outputs when renamed into place, not only after exit */
	bool stream;
	const char *const *outputs; /* command: patterns, NULL-terminated */
	/* command: how often its checkpoint is made durable, 0: by what a save takes; and the
	 * largest one that travels through this machine */
	int64_t checkpoint_every_ms, checkpoint_most_bytes;
	/* shell command that starts one worker; $BURST_KIT and $BURST_CODE are set; NULL for
	 * command */
	const char *worker;
	/* Debian packages that `install`, `setup` or the worker need, NULL-terminated or NULL:
	 * where the provider builds an image they are in it, elsewhere `install` brings them */
	const char *const *packages;
	/* shell text run once in each container before the workers start, as root where it is; NULL
	 */
	const char *install;
	/* where `install` has nothing to do: patterns of files, of which one is enough, then the
	 * words of a command that succeeds; NULL-terminated or NULL: unknown */
	const char *const *installed;
	/* NAME=VALUE, NULL-terminated or NULL: what `setup` finds in its environment beside
	 * env_names. It makes no difference to what the setup leaves, whose place on a volume
	 * follows from its text. No secrets */
	const char *const *setup_env;
	/* shell text whose result is kept on the volume in $BURST_ENV (skipped when there); NULL */
	const char *setup;
	/* The part of `setup` that is worth having in an image where its weights are not (`burst
	 * image`): leaves packages in $BURST_ENV, which `setup` finds in the image by the hash of
	 * this text. NULL: it has no such part */
	const char *setup_packages;
	int setup_download_mb; /* what `setup` fetches from the internet, about; 0: unknown */
	int setup_memory_gb;   /* what `setup` needs of a pod that does nothing else; 0: little */
	/* Nothing in the pod is the config's: burst wrote the setup, the install and the worker,
	 * and knows the hash of all that they fetch. */
	bool setup_is_ours;
	bool setup_by_card; /* what `setup` makes may hold for cards of one architecture alone */
	const struct job_file *files; /* plain names, no folders */
	size_t file_count;
	/* a worker silent for longer (or ten times its estimate) hangs; 0: no limit (commands) */
	int64_t hang_ms;
	/* how often a segment whose check fails is rendered in all, a new seed each; at least 1 */
	int tries;
	/* variables of the user's environment that travel (job.env), NULL-terminated */
	const char *const *env_names;
};

/* What became of one segment; the job is given an array of these in the order of its segments. */
struct segment_result {
	enum { SEGMENT_OPEN, SEGMENT_SAFE, SEGMENT_FAILED } state;
	bool cached;
	bool suspect;     /* the check was never satisfied; the best try was kept */
	char reason[320]; /* of failed and suspect */
	char sha256[SHA256_HEX];
	int64_t bytes;
	double seconds; /* of audio */
	int sample_rate;
	int tries;
	char provider[24], gpu[64], attempt[20], batch[24];
	char run[24]; /* of a command: the run that made it */
	/* cached: the file's name on the pod that rendered it; "": as it is here */
	char rendered_as[136];
	/* record() of a command, once for each output: its name below the output folder. NULL: the
	 * segment's own file. */
	const char *file;
};

/* How bad a file is that failed its check, against other tries of its segment. */
#define CHECK_DOUBT_MOST 1000000

struct check {
	bool ok;
	/* of a file that failed: 1 to CHECK_DOUBT_MOST; of all tries the least is kept, of equal
	 * ones the last. 0: as CHECK_DOUBT_MOST */
	int doubt;
	char reason[320];
	double seconds;
	int sample_rate;
};

struct job; /* each type's own; begins with nothing the engine may touch */

struct job_setup {
	const struct section *conf; /* the `job` group, read against job_ops.options */
	const char *base_dir;       /* relative paths of the config are relative to this */
	const char *output_dir;     /* absolute */
	const char *name;
	int pods; /* as configured; 0: absent */
	/* the user's own mirror of models, which gets the user's token for them; NULL: none */
	const char *weights_url;
	bool verbose;
	/* What conf's `key` names is a folder, and a file of it is a link to this real path: may
	 * that be read? What is read travels to pods. NULL: all may. */
	int (*may_read)(void *ctx, const char *key, const char *real, struct err *err);
	void *ctx;
	const char *commit; /* of git's, whose files are read; NULL: those of the working tree */
	const char *renders_dir; /* the render cache; NULL: none */
	int64_t renders_max_bytes;
	const char *image; /* of the pods; NULL: the provider's choice */
	bool code;         /* the project's own files go to the pods, too */
	bool anew;         /* no earlier file is reused */
	bool prune;        /* finish() removes the files of segments that there are no more */
	/* gets all that is wrong, and load() returns the first; NULL: load() ends at the first */
	struct mistakes *mistakes;
};

/* Of a job's outputs, since its folder was last written. */
struct job_changes {
	size_t added, changed;    /* to render: new, and new under a name that had something else */
	size_t gone;              /* outputs that no segment wants any more */
	size_t unchanged;         /* reused; of these: */
	size_t moved, from_cache; /* from another name of the folder, and from the render cache */
	size_t stale;             /* files whose names no segment has */
};

/* Of finish(): what it usually takes, and how far it is. */
struct job_finish {
	double ms_per_s; /* for a second of sound, on an idle machine */
	double share;    /* 0 to 1 */
};

struct job_ops {
	uint32_t abi;     /* JOB_ABI */
	const char *type; /* "tts" */
	const char *summary;
	/* keys of the `job` group for this type, the common ones included */
	const struct option_spec *options;

	/* What the settings alone show to be wrong; reads no file. Mistakes go to m, and 0 is
	 * returned; with m == NULL the first one is an error (ERR_CONFIG, names file:line). NULL:
	 * nothing to check. load() checks all of it again. */
	int (*check_conf)(const struct section *conf, struct mistakes *m, struct err *err);
	/* Reads the input and makes the segments. ERR_CONFIG names file:line. */
	int (*load)(struct job **out, const struct job_setup *setup, struct err *err);
	void (*free)(struct job *job);
	/* in the order of the script */
	struct segment *(*segments)(struct job *job, size_t *count);
	const struct job_needs *(*needs)(struct job *job);
	/* The line a worker (or the agent, for commands) gets for a segment, try 0, 1, ...: a new
	 * seed each. New reference. */
	json_t *(*task)(struct job *job, size_t index, int attempt);
	/* Which segments are done already: their file is in the output folder and matches the
	 * manifest by key and hash. Fills results[i]. A foreign file under a name of ours is
	 * ERR_CONFIG unless force. Writes and makes nothing, nor needs the folder to be there.
	 * Called before any renting. */
	int (*find_cached)(struct job *job, struct segment_result *results, bool force,
			   struct err *err);
	/* What find_cached() found. NULL: this type reuses nothing. */
	void (*changes)(const struct job *job, struct job_changes *out);
	/* How the input was read, as a line without its end: "read as 2 chapters, 40 paragraphs".
	 * Appends nothing if there is only one way. NULL: likewise. */
	void (*read_as)(const struct job *job, struct str *to);
	/* What of the input is not rendered, as a line without its end: "not spoken: 2 code blocks,
	 * 1 image". Appends nothing if all of it is. NULL: this type leaves nothing out. */
	void (*left_out)(const struct job *job, struct str *to);
	/* After find_cached(), before anything is rented: what finish() will not do on this
	 * machine, or not as the user may expect, a line each. ERR_LOCAL: it could not write its
	 * files. NULL: nothing is known. */
	int (*foresee)(struct job *job, const struct segment_result *results, struct str *notes,
		       struct err *err);
	/* After find_cached(), under the folder's lock: brings what it found elsewhere under the
	 * names of the segments. A result may be open again. NULL: nothing to bring. */
	int (*bring)(struct job *job, struct segment_result *results, struct str *notes,
		     struct err *err);
	/* For jobs whose find_cached() finds nothing, since they are done anew by each run; NULL
	 * for others. When a run is resumed, results[i].attempt names the attempt by which it was
	 * safe ("": it was not), and .sha256 is not "" where it brought a file: fills results[i]
	 * where all that it brought is still in the output folder, and forgets that attempt where
	 * it is not. */
	int (*recall)(struct job *job, struct segment_result *results, struct err *err);
	/* For commands: whether what has this name in the output folder may give way to a file of
	 * this run: nothing has it, or an unchanged file that the same run made. false: *err says
	 * whose it is. NULL for other types. */
	bool (*gives_way)(const struct job *job, const char *name, const char *run,
			  struct err *err);
	/* Is this finished file what it should be? Called in a worker thread with the local file
	 * (still under its .part name); may touch only state of the job's that has its own lock. -1
	 * only when the file cannot be read at all. NULL: any file is. */
	int (*check)(const struct job *job, size_t index, const char *file, struct check *out,
		     struct err *err);
	/* Appends a line for each result (one; of a command some of its outputs) to
	 * OUT/manifest.jsonl, synced, so that a later run knows the files. Called when they are
	 * verified and just before their renames: a line without its file is harmless, a file
	 * without a line would look foreign after a crash. May be called in a worker thread. NULL:
	 * the files are of use to this process alone. */
	int (*record)(struct job *job, size_t index, const struct segment_result *results,
		      size_t count, struct err *err);
	/* The segment's file is under its final name. May be called in a worker thread; NULL:
	 * nothing to do. */
	void (*kept)(struct job *job, size_t index, const struct segment_result *result);
	/* All that needs no GPU: manifest in order, joined track, subtitles. Called once at the
	 * end, also when some failed. notes gets lines for people ("joined.wav: 12m03s at -18.0
	 * LUFS"). NULL: nothing is left to do. */
	int (*finish)(struct job *job, const struct segment_result *results, struct str *notes,
		      struct err *err);
	/* What finish() writes beside the manifest: names in the output folder, NULL-terminated,
	 * the job's. In a folder with a manifest they are ours. NULL: nothing. */
	const char *const *(*finish_names)(struct job *job);
	/* Called before and while finish() runs in another thread. NULL: nothing is known. */
	void (*finish_progress)(const struct job *job, struct job_finish *out);
};

extern const struct job_ops *const job_registry[]; /* jobs/registry.c; NULL-terminated */

/* What an image of ours has, on its own disk: the agent as IMAGE_DIR/HASH; what a set-up script
 * leaves as IMAGE_DIR/env/KEY/, KEY being the SHA-256 of its text, complete where its file
 * IMAGE_KEY_FILE holds KEY. The agent looks for them there ($BURST_IMAGE: elsewhere). */
#define IMAGE_DIR      "/usr/local/lib/burst"
#define IMAGE_KEY_FILE ".burst-key"

/* What burst puts on every pod, whatever the job. jobs/agent/kit.h has it; the commands hand it to
 * the engine. */
struct pod_agent {
	const char *machine; /* as `uname -m` calls it there */
	const void *bytes;
	size_t len; /* 0: this burst was built without it */
	char hash[SHA256_HEX];
};

enum { POD_AGENTS = 2 };

struct pod_kit {
	const char *start_script;
	struct pod_agent
		agents[POD_AGENTS]; /* the first one is for x86_64, as images of ours are */
	/* in an image of ours: where the bootstrap looks for the first one, beside the pod's disk
	 * and the volume */
	const char *agent_path;
	/* Shell command for the first SSH channel: prints "BURST have", or "BURST need" and on the
	 * same line the pod's machine (nothing: the first agent's), on a line of its own; then it
	 * reads that agent's bytes from stdin, if it needs them, and becomes `agent attach`. */
	char *bootstrap;
};

#endif
