'use strict';
// status.js - a gRPC status other than OK, and the words for what became of a container.

const CODES = { CANCELLED: 1, UNKNOWN: 2, INVALID_ARGUMENT: 3, DEADLINE_EXCEEDED: 4, NOT_FOUND: 5, ALREADY_EXISTS: 6, PERMISSION_DENIED: 7,
	RESOURCE_EXHAUSTED: 8, FAILED_PRECONDITION: 9, ABORTED: 10, UNIMPLEMENTED: 12, INTERNAL: 13, UNAVAILABLE: 14, UNAUTHENTICATED: 16 };
const RESULT = { SUCCESS: 1, FAILURE: 2, TERMINATED: 3, TIMEOUT: 4, INIT_FAILURE: 5, INTERNAL_FAILURE: 6, IDLE_TIMEOUT: 7, MEMORY_MANAGER_EVICTION: 8 };

class Status extends Error {
	constructor(code, message, retry_after_s) {
		super(message);
		this.code = typeof code === 'string' ? CODES[code] : code;
		this.retry_after_s = retry_after_s;
	}
}

module.exports = { Status, CODES, RESULT };
