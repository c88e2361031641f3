'use strict';
// messages.js - the vendor's own message definitions, from its npm package: they are inside its one file and not exported,
// so that file's text is loaded with one more export. MD_PACKAGE is the folder that holds node_modules.

const fs = require('fs');
const path = require('path');
const Module = require('module');
const vm = require('vm');

const NAMES = ['ModalClientDefinition', 'TaskCommandRouterDefinition', 'RPCStatus', 'RPCRetryPolicy', 'BinaryReader', 'BinaryWriter'];
const STRANGE = 28001; // a field number that nobody has

// The package is large; what was compiled once is there in half the time.
const compiled_of = (file) => `${file}.${process.version}`;
function read_compiled(file) {
	try {
		return fs.readFileSync(compiled_of(file));
	} catch {
		return undefined;
	}
}
function keep_compiled(file, script) {
	const own = `${compiled_of(file)}.${process.pid}`;
	try {
		fs.writeFileSync(own, script.createCachedData());
		fs.renameSync(own, compiled_of(file)); // others may start beside us
	} catch {
		fs.rmSync(own, { force: true }); // not ours to write to
	}
}

function load() {
	const file = path.join(process.env.MD_PACKAGE || path.join(__dirname, '../../../build/modal'), 'node_modules/modal/dist/index.cjs');
	const it = { exports: {} };
	const wrapped = Module.wrap(`${fs.readFileSync(file, 'utf8')}\nmodule.exports = { ${NAMES.join(', ')} };`);
	const script = new vm.Script(wrapped, { filename: file, cachedData: read_compiled(file) });
	script.runInThisContext()(it.exports, Module.createRequire(file), it, file, path.dirname(file));
	if (script.cachedDataRejected !== false) keep_compiled(file, script);
	return it.exports;
}

const theirs = load();
const services = [theirs.ModalClientDefinition, theirs.TaskCommandRouterDefinition];
const methods = new Map(
	services.flatMap((s) => Object.values(s.methods).map((m) => [`/${s.fullName}/${m.name}`, { ...m, service: s.name }])),
);

// Remembers every field that the definitions do not know, or know with another type, however deep it is.
class StrictReader extends theirs.BinaryReader {
	constructor(bytes) {
		super(bytes);
		this.strange = [];
		const read = this.uint32;
		this.uint32 = () => (this.latest = read.call(this));
	}

	skip(wire_type, number) {
		this.strange.push(`field ${this.latest >>> 3}, wire type ${wire_type}`);
		return super.skip(wire_type, number);
	}
}

// Puts a field that nobody knows into the message and into each one inside of it.
class StrangeWriter extends theirs.BinaryWriter {
	join() {
		add_strange(this);
		return super.join();
	}
}

function add_strange(writer) {
	writer.uint32(STRANGE << 3).uint32(7);
	writer.uint32(((STRANGE + 1) << 3) | 2).string('zebra');
}

// { message, strange: what is not in the definitions }
function decode(type, bytes) {
	const reader = new StrictReader(bytes);
	return { message: type.decode(reader), strange: reader.strange };
}

function encode(type, object, strange) {
	const writer = strange ? new StrangeWriter() : new theirs.BinaryWriter();
	type.encode(type.fromPartial(object), writer);
	if (strange) add_strange(writer);
	return Buffer.from(writer.finish());
}

// The message behind grpc-status-details-bin that asks for another try after so many seconds.
function retry_details(code, message, retry_after_s) {
	const value = encode(theirs.RPCRetryPolicy, { retryAfterSecs: retry_after_s });
	const details = [{ typeUrl: 'type.modal.com/modal.client.RPCRetryPolicy', value }];
	return encode(theirs.RPCStatus, { code, message, details }).toString('base64');
}

module.exports = { methods, decode, encode, retry_details };
