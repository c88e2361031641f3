/* script.c - the programs that a shell on the login node gets, and the command that leads into a
 * pod
 */
#include "impl.h"

#include <stdlib.h>

#include "base/incbin.h"

INCBIN(slurm_login_script, "providers/slurm/login.sh");
INCBIN(slurm_batch_script, "providers/slurm/batch.sh");

/* ---- words of a shell ---- */

static void assign(struct str *to, const char *name, const char *value)
{
	str_addf(to, "%s=", name);
	str_add_shell(to, value);
	str_addc(to, '\n');
}

/* volume_dir as the shell there understands it: a path, or one below "~". */
static void assign_dir(struct str *to, const struct section *conf)
{
	const char *dir = section_text(conf, "volume_dir");

	if (!starts_with(dir, "~/")) {
		assign(to, "dir", dir);
		return;
	}
	str_add(to, "dir=$HOME/");
	str_add_shell(to, dir + 2);
	str_addc(to, '\n');
}

static void add_option(struct str *to, const char *name, const char *value)
{
	CLEANUP(free_text) char *word = NULL;

	if (!value || !value[0])
		return;
	word = xasprintf("%s%s", name, value);
	str_addc(to, ' ');
	str_add_shell(to, word);
}

/* ---- what sbatch gets ---- */

/* Options that hold for every job; those of the user's come first, and none of them is one of ours
 * (slurm.c). */
static void add_job_options(struct str *to, const struct section *conf, bool spot)
{
	const char *spot_qos = section_text(conf, "spot_qos");

	for (size_t i = 0; i < section_count(conf, "sbatch_options"); i++)
		add_option(to, "", section_item(conf, "sbatch_options", i));
	add_option(to, "--account=", section_text(conf, "account"));
	add_option(to, "--qos=", spot && spot_qos ? spot_qos : section_text(conf, "qos"));
	add_option(to, "--constraint=", section_text(conf, "constraint"));
}

/* The offer's id is "PARTITION GRES". */
static void add_rent_options(struct str *to, const struct section *conf,
			     const struct rent_request *rent)
{
	CLEANUP(free_text) char *partition = xstrdup(rent->offer.id);
	char *gres = strchr(partition, ' ');
	char number[32];

	add_job_options(to, conf, rent->offer.spot);
	if (gres) {
		*gres++ = '\0';
		add_option(to, "--partition=", partition);
		if (strcmp(gres, "none"))
			add_option(to, "--gres=", gres);
	}
	if (rent->cpu) {
		format_text(number, sizeof(number), "%lld", (long long)rent->cpu);
		add_option(to, "--cpus-per-task=", number);
	}
	if (rent->memory_gb) {
		format_text(number, sizeof(number), "%lldG", (long long)rent->memory_gb);
		add_option(to, "--mem=", number);
	}
}

/* The pod's environment as a file to source: its secrets are in no script, argument or variable
 * that Slurm keeps. */
static void assign_env(struct str *to, const struct rent_request *rent)
{
	CLEANUP(str_free) struct str file = STR_INIT;

	for (size_t i = 0; i < rent->env_count; i++) {
		/* pods are processes on a shared node: no container, and no mount of its own */
		if (!strcmp(rent->env[i].name, "BURST_CONTAINER") ||
		    !strcmp(rent->env[i].name, "BURST_VOLUME"))
			continue;
		str_addf(&file, "export %s=", rent->env[i].name);
		str_add_shell(&file, rent->env[i].value);
		str_addc(&file, '\n');
	}
	str_add(&file, "export BURST_REACH=dial BURST_HOME=\"$burst_home\"\nexport BURST_VOLUME=");
	if (rent->volume.id[0]) {
		str_add(&file, "\"${PWD%/pods/*}/volumes\"/");
		str_add_shell(&file, rent->volume.id);
	} else {
		str_add(&file, "\"$burst_home/volume\"");
	}
	assign(to, "env", str_text(&file));
	str_wipe(&file);
}

static void assign_batch(struct str *to, const struct rent_request *rent)
{
	CLEANUP(str_free) struct str batch = STR_INIT;

	str_addf(&batch, "#!/bin/sh\nburst_home=/tmp/%s\n%s%s", rent->name, slurm_batch_script,
		 rent->start_script);
	assign(to, "batch", str_text(&batch));
}

static void add_rent(struct str *to, const struct rent_request *rent)
{
	const struct marker *m = &rent->marker;
	CLEANUP(free_text)
	char *marker = xasprintf("burst1.%s.%s.%s.%lld", m->machine, m->run, m->attempt,
				 (long long)m->hard_end_s);

	assign(to, "name", rent->name);
	assign(to, "marker", marker);
	str_addf(to, "hard_end=%lld run_s=%lld\n", (long long)m->hard_end_s,
		 (long long)rent->run_s);
	assign_env(to, rent);
	assign_batch(to, rent);
}

/* ---- the program ---- */

static const char *const functions[] = {
	[OP_CHECK] = "check",         [OP_OFFERS] = "offers",
	[OP_VOLUME] = "volume",       [OP_VOLUMES] = "volumes",
	[OP_RENT] = "rent",           [OP_VOLUME_REMOVE] = "volume_remove",
	[OP_INSPECT] = "inspect",     [OP_LIST] = "list",
	[OP_RELEASE] = "release",     [OP_BILLING] = "billing",
	[OP_LOGS] = "pod_log",        [OP_FETCH] = "fetch",
	[OP_VOLUME_LS] = "volume_ls", [OP_VOLUME_DELETE] = "volume_delete",
};

/* A rent may have to release, in a second step, what it has made. */
static enum op_kind what_to_do(const struct op *op)
{
	return op->step ? OP_RELEASE : op->kind;
}

/* The variables of login.sh that this operation needs. */
static int add_assignments(const struct op *op, struct str *to, struct err *err)
{
	const struct op_want *want = op->want;
	const struct section *conf = op->provider->section;
	char job[SLURM_JOB_MAX], name[POD_NAME_MAX];
	const char *id;

	assign_dir(to, conf);
	switch (what_to_do(op)) {
	case OP_RENT: add_rent(to, &want->rent); return 0;
	case OP_OFFERS:
		assign(to, "by_billing", section_has(conf, "price_per_billing_hour") ? "1" : "");
		return 0;
	case OP_INSPECT:
	case OP_RELEASE:
	case OP_BILLING:
	case OP_LOGS:
		id = op->step ? op->found.pods[0].id : want->id;
		if (!slurm_split_id(id, job, name))
			return err_set(err, ERR_NOT_FOUND, "no pod has the id \"%s\"", id);
		assign(to, "job", job);
		assign(to, "name", name);
		return 0;
	case OP_VOLUME:
		assign(to, "volume", want->volume.name);
		assign(to, "create", want->volume.create ? "1" : "");
		return 0;
	case OP_VOLUME_REMOVE: assign(to, "volume", want->id); return 0;
	case OP_FETCH:
	case OP_VOLUME_LS:
	case OP_VOLUME_DELETE:
		assign(to, "volume", want->file.volume.id);
		assign(to, "path", want->file.path);
		str_addf(to, "offset=%lld\n", (long long)want->file.offset);
		return 0;
	default: return 0;
	}
}

/* A shell of POSIX's kind on the login node, whatever the login shell is. */
static void call_shell(const struct section *conf, const char *command, struct call *call)
{
	/* the user's own config of ssh holds for everything else */
	static const char *const options[] = {"-T", "-oBatchMode=yes", "-oConnectTimeout=15",
					      "-oServerAliveInterval=15",
					      "-oServerAliveCountMax=3"};
	const char *login = section_text(conf, "login");

	if (!login) {
		call_arg(call, "sh");
		if (command) {
			call_arg(call, "-c");
			call_arg(call, command);
		}
		return;
	}
	CLEANUP(str_free) struct str remote = STR_INIT;
	call_arg(call, "ssh");
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		call_arg(call, options[i]);
	call_arg(call, login);
	str_add(&remote, "exec sh");
	if (command) {
		str_add(&remote, " -c ");
		str_add_shell(&remote, command);
	}
	call_arg(call, str_text(&remote));
}

/* The file is the shell's stdin, so its program is an argument: one line, for the sake of csh. The
 * file gets its name once all of it is there. */
static void ask_stage(const struct op *op, struct call *call)
{
	static const char program[] =
		"umask 077; cd \"$dir/volumes/$volume\" || exit 1; at=.; rest=$path; "
		"while :; do case $rest in */*) at=$at/${rest%%/*}; rest=${rest#*/};; *) break;; "
		"esac; if [ -L \"$at\" ]; then echo \"burst: $path: a link is in the way\" >&2; "
		"exit 1; fi; [ -d \"$at\" ] || mkdir \"$at\" || exit 1; done; "
		"part=$at/.burst-$$.part; cat >\"$part\" && [ \"$(wc -c <\"$part\")\" -eq $bytes ] "
		"&& "
		"mv -f \"$part\" \"$at/$rest\" && echo \"burst: stored\" >&2 && exit; "
		"rm -f \"$part\"; echo \"burst: $path did not arrive whole\" >&2; exit 1";
	const struct op_want *want = op->want;
	CLEANUP(str_free) struct str line = STR_INIT;

	assign_dir(&line, op->provider->section);
	assign(&line, "volume", want->file.volume.id);
	assign(&line, "path", want->file.path);
	str_addf(&line, "bytes=%lld\n", (long long)want->file.blocks.bytes);
	for (char *c = line.s; *c; c++)
		if (*c == '\n')
			*c = ';';
	str_add(&line, program);
	call->body_from = xstrdup(want->file.local);
	call_shell(op->provider->section, str_text(&line), call);
}

int slurm_ask(const struct op *op, struct call *call, struct err *err)
{
	const struct section *conf = op->provider->section;
	struct str *program = &call->body;
	enum op_kind kind = what_to_do(op);

	if (kind == OP_STAGE) {
		ask_stage(op, call);
		return 0;
	}
	if (add_assignments(op, program, err) < 0)
		return -1;
	str_add(program, slurm_login_script);
	/* the whole program is read before it begins, so a cut line runs nothing */
	str_addf(program, "{\n%s%s", kind == OP_FETCH ? "" : "answer ", functions[kind]);
	if (kind == OP_FETCH) {
		call->body_to = xstrdup(op->want->file.local);
		call->max_bytes =
			op->want->file.max_bytes > 0 ? (size_t)op->want->file.max_bytes : SIZE_MAX;
	}
	if (kind == OP_RENT)
		add_rent_options(program, conf, &op->want->rent);
	if (kind == OP_CHECK)
		add_job_options(program, conf, false);
	str_add(program, " </dev/null\n}\n");
	call_shell(conf, NULL, call);
	return 0;
}

/* Waits for the pod's file `connect`: it appears soon after the job has begun. The folder must be
 * the user's own, since its name is known to all on that node. -u: without it srun keeps what
 * follows the last newline. -Q, exit 0, and a shell that takes ssh's SIGHUP: at the end of the
 * connection srun ends by itself and has nothing to report. */
int slurm_dial(const struct provider *p, const struct pod_view *pod, struct call *call,
	       struct err *err)
{
	char job[SLURM_JOB_MAX], name[POD_NAME_MAX];

	if (!slurm_split_id(pod->id, job, name))
		return err_set(err, ERR_REFUSED, "no pod has the id \"%s\"", pod->id);
	CLEANUP(free_text)
	char *command =
		xasprintf("PATH=$PATH:/usr/sbin; trap '' HUP; srun -Q --overlap --jobid=%s -N1 -n1 "
			  "-u --mem=0 "
			  "--gres=none --export=ALL,BURST_HOME=/tmp/%s sh -c '"
			  "n=0; until [ -O \"$BURST_HOME\" ] && [ -O \"$BURST_HOME/connect\" ]; do "
			  "n=$((n + 1)); [ $n -lt 40 ] || exit 1; sleep 0.5; done; "
			  "sh \"$BURST_HOME/connect\"; exit 0'; exit",
			  job, name);
	call_shell(p->section, command, call);
	return 0;
}
