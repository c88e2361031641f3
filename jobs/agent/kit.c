/* kit.c - the agent and the workers as bytes inside burst. */
#include "kit.h"

#include <stdlib.h>

#include "base/str.h"
#include "incbin.h"
#include "kit_sizes.h"

INCBIN(kit_agent, "build/kit/burst-agent");
INCBIN(kit_start_script, "jobs/agent/start.sh");

/* For the shell of the first SSH channel, after h=HASH n=BYTES. No single quote may stand in it.
 * The agent is looked for on the container's disk, in its image, then on the volume; else it comes
 * over stdin and is left on the volume in the background: a volume that is full, slow or read-only
 * costs only the next pod, and a copy whose hash cannot be checked is not run. dd takes exactly n
 * bytes and no more, since what follows is for the agent. Where the home is mounted noexec, /tmp is
 * tried. */
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
	"	echo BURST need\n"
	"	receive\n"
	"	keep </dev/null >/dev/null 2>&1 &\n"
	"fi\n"
	"if ! \"$agent\" --version </dev/null >/dev/null 2>&1; then\n"
	"	elsewhere=${TMPDIR:-/tmp}/burst-agent-$h.d\n"
	"	{ mkdir -m 711 \"$elsewhere\" 2>/dev/null || { [ -O \"$elsewhere\" ] && [ ! -L "
	"\"$elsewhere\" ]; }; } &&\n"
	"	put \"$agent\" \"$elsewhere/agent\" && agent=$elsewhere/agent\n" /* in no folder
										    that others
										    write to */
	"fi\n"
	"ln -sf \"$agent\" \"$home/burst-agent\"\n" /* where further channels find it */
	"exec \"$agent\" attach\n";

static char *make_bootstrap(const char *hash)
{
	struct str s = STR_INIT;
	str_addf(&s, "exec sh -c 'h=%s n=%d\n%s'", hash, KIT_BURST_AGENT_BYTES, bootstrap_script);
	return str_detach(&s);
}

const struct pod_kit *pod_kit(void)
{
	static struct pod_kit kit;

	if (kit.bootstrap)
		return &kit;
	kit.start_script = kit_start_script;
	kit.agent = kit_agent;
	kit.agent_len = KIT_BURST_AGENT_BYTES;
	sha256_hex(kit.agent, kit.agent_len, kit.agent_hash);
	kit.agent_path = xasprintf(IMAGE_DIR "/%s", kit.agent_hash);
	kit.bootstrap = make_bootstrap(kit.agent_hash);
	return &kit;
}
