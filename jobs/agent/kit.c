/* kit.c - the agent and the workers as bytes inside burst. */
#include "kit.h"

#include <stdlib.h>

#include "base/str.h"
#include "base/incbin.h"
#include "kit_sizes.h"

INCBIN(kit_agent_x86_64, "build/kit/burst-agent-x86_64");
INCBIN(kit_agent_aarch64, "build/kit/burst-agent-aarch64");
INCBIN(kit_start_script, "jobs/agent/start.sh");

/* Runs in the shell of the first SSH channel, after h=HASH n=BYTES machine=NAME. It must not
 * contain a single quote. It looks for the agent on the container's disk, in the image, then on the
 * volume. Otherwise the agent comes over stdin and is copied to the volume in the background,
 * because a full, slow or read-only volume should cost only the next pod. It takes a
 * copy from image or volume only if it can check the hash. dd reads exactly n bytes, since the
 * agent's own input follows. If the home is mounted noexec, it uses a new folder in /tmp. */
static const char bootstrap_script[] =
	"home=${BURST_HOME:-/run/burst} volume=${BURST_VOLUME:-/workspace}\n"
	"export BURST_HOME=\"$home\" BURST_VOLUME=\"$volume\"\n"
	"image=${BURST_IMAGE:-" IMAGE_DIR "}\n"
	"umask 077\n"
	"mkdir -p \"$home\"\n"
	"agent=$home/burst-agent-$h kept=$volume/agent/$h\n"
	"fits() {\n"
	"	[ -f \"$1\" ] && [ \"$(wc -c <\"$1\")\" -eq $n ] || return 1\n"
	"	sum=$(sha256sum \"$1\" 2>/dev/null) || return 0\n"
	"	[ \"${sum%% *}\" = $h ]\n"
	"}\n"
	"put() { rm -f \"$2.$$\"; cp \"$1\" \"$2.$$\" 2>/dev/null && chmod 755 \"$2.$$\" && fits "
	"\"$2.$$\" && mv -f \"$2.$$\" \"$2\" ||\n"
	"	{ rm -f \"$2.$$\"; return 1; }; }\n"
	"receive() {\n"
	"	dd bs=$n count=1 iflag=fullblock 2>/dev/null >\"$agent.$$\" && [ -s \"$agent.$$\" "
	"] || head -c $n >\"$agent.$$\"\n"
	"	chmod 755 \"$agent.$$\" && fits \"$agent.$$\" && mv -f \"$agent.$$\" \"$agent\" && "
	"return\n"
	"	echo \"the agent did not arrive whole, or there is no room for it in $home\" >&2\n"
	"	rm -f \"$agent.$$\"\n"
	"	exit 1\n"
	"}\n"
	"take() { command -v sha256sum >/dev/null && fits \"$1\" && put \"$1\" \"$agent\"; }\n"
	"keep() { mkdir -p \"$volume/agent\" && put \"$agent\" \"$kept\"; }\n"
	"if fits \"$agent\" || take \"$image/$h\" || take \"$kept\"; then\n"
	"	echo BURST have\n"
	"else\n"
	"	echo \"BURST need$machine\"\n"
	"	receive\n"
	"	keep </dev/null >/dev/null 2>&1 &\n"
	"fi\n"
	"if ! \"$agent\" --version </dev/null >/dev/null 2>&1; then\n"
	"	elsewhere=${TMPDIR:-/tmp}/burst-agent-$h.d\n"
	"	{ mkdir -m 711 \"$elsewhere\" 2>/dev/null || { [ -O \"$elsewhere\" ] && [ ! -L "
	"\"$elsewhere\" ]; }; } &&\n"
	"	put \"$agent\" \"$elsewhere/agent\" && agent=$elsewhere/agent\n" /* a folder that
										    other users
										    cannot write to
										  */
	"fi\n"
	"ln -sf \"$agent\" \"$home/burst-agent\"\n" /* further channels find the agent here */
	"exec \"$agent\" attach\n";

static const struct {
	const char *names; /* pattern of the shell's `case` for the output of `uname -m` */
	const char *machine;
	const char *bytes;
	size_t len;
} built[POD_AGENTS] = {
	{"*", "x86_64", kit_agent_x86_64, KIT_AGENT_X86_64_BYTES},
	{"aarch64 | arm64", "aarch64", kit_agent_aarch64, KIT_AGENT_AARCH64_BYTES},
};

/* Adds shell that sets h, n and machine for the script below by the pod's machine. Lists the last
 * agent first: the first one's pattern matches every name. machine begins with a space, because
 * the script appends it to a word; it is empty for the first agent. */
static void add_machine_case(struct str *to, const struct pod_kit *kit)
{
	str_add(to, "case $(uname -m) in\n");
	for (size_t i = POD_AGENTS; i-- > 0;) {
		const struct pod_agent *agent = &kit->agents[i];
		str_addf(to, "%s) ", built[i].names);
		if (agent->len)
			str_addf(to, "h=%s n=%zu machine=%s%s ;;\n", agent->hash, agent->len,
				 i ? "\\ " : "", i ? agent->machine : "");
		else
			str_addf(
				to,
				"echo \"this burst was built without an agent for %s\" >&2; exit 1 "
				";;\n",
				agent->machine);
	}
	str_add(to, "esac\n");
}

static char *make_bootstrap(const struct pod_kit *kit)
{
	struct str s = STR_INIT;

	str_add(&s, "exec sh -c '");
	add_machine_case(&s, kit);
	str_addf(&s, "%s'", bootstrap_script);
	return str_detach(&s);
}

const struct pod_kit *pod_kit(void)
{
	static struct pod_kit kit;

	if (kit.bootstrap)
		return &kit;
	kit.start_script = kit_start_script;
	for (size_t i = 0; i < POD_AGENTS; i++) {
		struct pod_agent *agent = &kit.agents[i];
		*agent = (struct pod_agent){
			.machine = built[i].machine, .bytes = built[i].bytes, .len = built[i].len};
		sha256_hex(agent->bytes, agent->len, agent->hash);
	}
	if (kit.agents[0].len)
		kit.agent_path = xasprintf(IMAGE_DIR "/%s", kit.agents[0].hash);
	kit.bootstrap = make_bootstrap(&kit);
	return &kit;
}
