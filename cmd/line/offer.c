/* offer.c - decides which values a shell offers for an argument. */
#include "offer.h"

#include "cmd/cmd.h"
#include "cmd/show/text.h"

/* command NULL: all commands without a row of their own. */
static const struct {
	const char *word, *command, *list;
} lists[] = {
	{"RUN", "attach", "living"},
	{"RUN", "cancel", "living"},
	{"RUN", "keep", "living"},
	{"RUN", NULL, "runs"},
	{"POD", NULL, "pods"},
	{"PROVIDER", NULL, "providers"},
	{"GPU", NULL, "gpus"},
	{"COMMAND", "help", "commands"},
	{"NAME", "volume", "volumes"},
	{"NAME", "schedule", "schedules"},
	{"CONFIG|REQUEST", NULL, "requests"},
};

static const char *list_for(const char *command, const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (!strcmp(word, lists[i].word) &&
		    (!lists[i].command || !strcmp(command, lists[i].command)))
			return lists[i].list;
	return NULL;
}

enum offer_kind offer_of(const struct cmd *cmd, const char *word, char *out, size_t room)
{
	const char *list = list_for(cmd ? cmd->name : "", word);

	snprintf(out, room, "%s", list ? list : "");
	if (list)
		return OFFER_LIST;
	if (starts_with(word, "CONFIG")) {
		snprintf(out, room, "%s",
			 strcmp(word, "CONFIG|TEXT") ? "cfg" : "cfg txt md csv tsv jsonl");
		return OFFER_ENDINGS;
	}
	if (!strcmp(word, "FILE"))
		return OFFER_FILES;
	if (!strcmp(word, "DIR"))
		return OFFER_FOLDERS;
	if (starts_with(word, "N|")) /* any number */
		word += 2;
	else if (!strchr(word, '|'))
		return OFFER_NOTHING;
	snprintf(out, room, "%s", word);
	for (char *p = out; (p = strchr(p, '|'));)
		*p = ' ';
	return OFFER_CHOICES;
}

void offer_argument(const struct cmd *cmd, int n, char *out, size_t room)
{
	const char *args = cmd->args;
	int more;

	for (int i = 0; i <= n; i++)
		if (!text_arg(out, room, &args, &more)) {
			*out = '\0';
			return;
		}
}
