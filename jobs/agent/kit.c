/* kit.c - the agent and the workers as bytes inside burst. */
#include "kit.h"

#include <stdlib.h>

#include "base/str.h"
#include "base/incbin.h"
#include "kit_sizes.h"

INCBIN(kit_agent_x86_64, "build/kit/burst-agent-x86_64");
INCBIN(kit_agent_aarch64, "build/kit/burst-agent-aarch64");
INCBIN(kit_start_script, "jobs/agent/start.sh");
INCBIN(kit_bootstrap_script, "jobs/agent/bootstrap.sh");

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
	str_addf(&s, "%s'", kit_bootstrap_script);
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
