/* verbs.c - lists what `burst local-cloud` can be told to do. */
#include "translator.h"

/* A child that hangs must not hang burst, so each has a limit. Release, removal and listing have
 * long ones: they may delete a full disk's worth of files. */
const struct local_verb local_verbs[] = {
	[OP_CHECK] = {"check", CALL_POLL, true, 20000},
	[OP_OFFERS] = {"offers", CALL_POLL, true, 60000},
	[OP_VOLUME] = {"volume", CALL_CREATE, true, 20000},
	[OP_VOLUMES] = {"volumes", CALL_POLL, true, 120000},
	[OP_VOLUME_REMOVE] = {"volume-remove", CALL_POLL, true, 600000},
	[OP_RENT] = {"rent", CALL_CREATE, false, 60000},
	[OP_INSPECT] = {"inspect", CALL_POLL, true, 60000},
	[OP_LIST] = {"list", CALL_POLL, true, 60000},
	[OP_RELEASE] = {"release", CALL_RELEASE, true, 120000},
	[OP_BILLING] = {"billing", CALL_POLL, true, 60000},
	[OP_LOGS] = {"logs", CALL_POLL, true, 20000},
	[OP_STAGE] = {"stage", CALL_POLL, true, 3600000},
	[OP_FETCH] = {"fetch", CALL_POLL, false, 3600000},
	[OP_VOLUME_LS] = {"volume-ls", CALL_POLL, true, 600000},
	[OP_VOLUME_DELETE] = {"volume-delete", CALL_POLL, true, 600000},
};
