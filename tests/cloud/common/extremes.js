'use strict';
// extremes.js - replies of extreme sizes and counts, as a broken or hostile server may send them. A name says which; some never
// end. The stand-ins send them where a rule says {"extreme":NAME}. By itself,
//
//   node tests/cloud/common/extremes.js NAME...      (none: all of them)
//
// serves each at a port of its own on loopback, prints {"NAME":{"port":N,"wire":"http"|"h2"|"ssh"},..} as one line and ends when
// its stdin closes. An http one answers each request, an h2 one (no TLS) the first stream, an ssh one every connection.

const net = require('net');

const MIB = 1 << 20;
const OK = 'HTTP/1.1 200 OK\r\n';

function* repeat(piece, times = Infinity) {
	const whole = Buffer.from(piece), many = Math.max(1, Math.floor(65536 / whole.length));
	const block = Buffer.concat(Array(Math.min(many, times)).fill(whole));
	for (let left = times; left > 0; left -= many) yield left >= many ? block : block.subarray(0, left * whole.length);
}
function* chain(...parts) {
	for (const part of parts) {
		if (typeof part === 'string' || Buffer.isBuffer(part)) yield Buffer.from(part);
		else yield* part;
	}
}
// A byte at a time: the pause is part of the reply.
function* dribble(text) {
	for (const byte of Buffer.from(text)) yield { pause_ms: 50, bytes: Buffer.from([byte]) };
}
const json = (text, head = '') => [OK, `Content-Type: application/json\r\n${head}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n`, text];
const chunked = (...parts) => chain(OK, 'Transfer-Encoding: chunked\r\n\r\n', ...parts);

const HTTP = {
	header_100k: () => chain(OK, 'X-Long: ', repeat('x', 110000), '\r\nContent-Length: 2\r\n\r\n{}'),
	header_10m: () => chain(OK, 'X-Long: ', repeat('x', 10 * MIB), '\r\nContent-Length: 2\r\n\r\n{}'),
	header_endless: () => chain(OK, 'X-Long: ', repeat('x')),
	header_name_10m: () => chain(OK, repeat('x', 10 * MIB), ': 1\r\nContent-Length: 2\r\n\r\n{}'),
	headers_100000: () => chain(OK, repeat('X-A: 1\r\n', 100000), 'Content-Length: 2\r\n\r\n{}'),
	headers_endless: () => chain(OK, repeat('X-A: 1\r\n')),
	header_folds: () => chain(OK, 'X-A: 1\r\n', repeat(` ${'1'.repeat(200)}\r\n`)),
	header_nul: () => chain(OK, 'X-A: a\0b\r\nContent-Length: 2\r\n\r\n{}'),
	status_10m: () => chain('HTTP/1.1 200 ', repeat('O', 10 * MIB), '\r\nContent-Length: 2\r\n\r\n{}'),
	status_number: () => chain('HTTP/1.1 99999999999999999999 OK\r\nContent-Length: 2\r\n\r\n{}'),
	continue_endless: () => repeat('HTTP/1.1 100 Continue\r\n\r\n'),
	hints_endless: () => repeat(`HTTP/1.1 103 Early Hints\r\nLink: <${'x'.repeat(1000)}>\r\n\r\n`),
	switching: () => chain('HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n', repeat('\0', MIB)),
	length_huge: () => chain(OK, 'Content-Length: 99999999999999999999999\r\n\r\n{}'),
	length_2_63: () => chain(OK, 'Content-Length: 9223372036854775807\r\n\r\n', repeat('{')),
	length_negative: () => chain(OK, 'Content-Length: -1\r\n\r\n{}'),
	length_twice: () => chain(OK, 'Content-Length: 2\r\nContent-Length: 200\r\n\r\n{}'),
	chunk_huge: () => chunked('ffffffffffffffff\r\n', repeat('{')),
	chunk_digits: () => chunked(repeat('0')),
	chunk_extension: () => chunked('2;x=', repeat('x')),
	chunk_empty: () => chunked(repeat('1\r\n{\r\n')),
	trailer_10m: () => chunked('2\r\n{}\r\n0\r\nX-Long: ', repeat('x', 10 * MIB), '\r\n\r\n'),
	trailers_endless: () => chunked('2\r\n{}\r\n0\r\n', repeat('X-A: 1\r\n')),
	body_endless: () => chain('HTTP/1.0 200 OK\r\n\r\n', repeat('[')),
	gzip_bomb: () => chain(OK, 'Content-Encoding: gzip\r\nContent-Length: 10240\r\n\r\n', require('zlib').gzipSync(Buffer.alloc(10 * MIB)).subarray(0, 10240)),
	dribble: () => chain(OK, dribble(`X-Long: ${'x'.repeat(100000)}`)),
	dribble_body: () => chain(OK, 'Content-Length: 100000\r\n\r\n', dribble('x'.repeat(100000))),
	json_deep: () => chain(...json(`{"pods":${'['.repeat(300000)}`)),
	json_wide: () => chain(...json(`{"pods":[${'[],'.repeat(300000)}[]]}`)),
	json_keys: () => chain(...json(`{${Array.from({ length: 60000 }, (_, i) => `"k${i}":1`).join()}}`)),
	json_numbers: () => chain(...json(`{"pods":[{"id":99999999999999999999999,"costPerHr":1e99999,"createdAt":-1e308}],"gpus":[{"memory":-9223372036854775808}]}`)),
	json_text: () => chain(...json(`{"pods":[{"id":"${'x'.repeat(700000)}","name":"${'\\u0000'.repeat(10)}"}]}`)),
	retry_after: () => chain('HTTP/1.1 429 No\r\nRetry-After: 99999999999999999999\r\nRateLimit: "minute";r=-99999999999999999999;t=99999999999999999999, ',
		repeat('"x";r=0;t=9,', 5000), '\r\nContent-Length: 2\r\n\r\n{}'),
};

// ---- HTTP/2 ----

const DATA = 0, HEADERS = 1, PRIORITY = 2, RST = 3, SETTINGS = 4, PUSH = 5, PING = 6, GOAWAY = 7, WINDOW = 8, CONTINUATION = 9;
const END_STREAM = 1, END_HEADERS = 4;

function frame(type, flags, stream, body = Buffer.alloc(0), length = body.length) {
	const head = Buffer.alloc(9);
	head.writeUIntBE(length, 0, 3);
	head[3] = type;
	head[4] = flags;
	head.writeUInt32BE(stream, 5);
	return Buffer.concat([head, body]);
}
const u32 = (...list) => Buffer.concat(list.map((n) => Buffer.from([n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255])));
const setting = (id, value) => Buffer.concat([Buffer.from([0, id]), u32(value)]);
// HPACK: a number in the low bits of its first byte, a literal without Huffman's code.
function number(first, bits, n) {
	const most = (1 << bits) - 1;
	if (n < most) return Buffer.from([first | n]);
	const out = [first | most];
	for (n -= most; n > 127; n = Math.floor(n / 128)) out.push((n % 128) | 128);
	return Buffer.from([...out, n]);
}
const text = (t) => Buffer.concat([number(0, 7, t.length), Buffer.from(t)]);
const literal = (name, value, kind = 0) => Buffer.concat([Buffer.from([kind]), text(name), text(value)]); // kind 0x40: into the table
const GRPC = Buffer.concat([Buffer.from([0x88]), literal('content-type', 'application/grpc')]);
const START = (s) => frame(HEADERS, END_HEADERS, s, GRPC);
// A block of headers in frames of 16 KiB.
function* block(s, bytes, end = true) {
	for (let at = 0, nth = 0; at < bytes.length || !nth; at += 16384, nth++)
		yield frame(nth ? CONTINUATION : HEADERS, end && at + 16384 >= bytes.length ? END_HEADERS : 0, s, bytes.subarray(at, at + 16384));
}

const H2 = {
	h2_continuation_endless: (s) => chain(frame(HEADERS, 0, s, GRPC), repeat(frame(CONTINUATION, 0, s, literal('x-a', 'x'.repeat(100))))),
	h2_continuation_empty: (s) => chain(frame(HEADERS, 0, s, GRPC), repeat(frame(CONTINUATION, 0, s))),
	h2_header_10m: (s) => block(s, Buffer.concat([GRPC, literal('x-long', 'x'.repeat(10 * MIB))])),
	h2_headers_100000: (s) => block(s, Buffer.concat([GRPC, ...Array(100000).fill(literal('x-a', '1'))])),
	h2_table_bomb: (s) => block(s, Buffer.concat([GRPC, literal('x-a', 'x'.repeat(3900), 0x40), Buffer.alloc(200000, 0xbe)])),
	h2_table_update: (s) => block(s, Buffer.concat([number(0x20, 5, 0xffffffff), GRPC])),
	h2_table_setting: (s) => chain(frame(SETTINGS, 0, 0, setting(1, 0xffffffff)), START(s)),
	h2_index_wild: (s) => block(s, number(0x80, 7, 0x7fffffff)),
	h2_settings_endless: () => repeat(frame(SETTINGS, 0, 0, setting(3, 100))),
	h2_settings_many: () => chain(frame(SETTINGS, 0, 0, Buffer.concat(Array(2700).fill(setting(3, 100)))), repeat(frame(SETTINGS, 0, 0, Buffer.concat(Array(2700).fill(setting(4, 65535)))))),
	h2_ping_endless: () => repeat(frame(PING, 0, 0, Buffer.alloc(8))),
	h2_priority_endless: (s) => repeat(frame(PRIORITY, 0, s, u32(0, 0).subarray(0, 5))),
	h2_rst_endless: (s) => chain(START(s), repeat(frame(RST, 0, s, u32(8)))),
	h2_rst_now: (s) => chain(frame(RST, 0, s, u32(7))),
	h2_window_zero: () => chain(frame(SETTINGS, 0, 0, setting(4, 0))),
	h2_window_wild: (s) => chain(repeat(frame(WINDOW, 0, s, u32(0x7fffffff)), 3), repeat(frame(WINDOW, 0, 0, u32(0x7fffffff)), 3)),
	h2_window_frame_0: () => chain(frame(SETTINGS, 0, 0, setting(5, 0))),
	h2_data_empty: (s) => chain(START(s), repeat(frame(DATA, 0, s))),
	h2_data_endless: (s) => chain(START(s), repeat(frame(DATA, 0, s, Buffer.alloc(16384)))),
	h2_padding_endless: (s) => chain(START(s), repeat(frame(DATA, 8, s, Buffer.concat([Buffer.from([255]), Buffer.alloc(255)])))),
	h2_frame_16m: (s) => chain(START(s), frame(DATA, 0, s, Buffer.alloc(0), 0xffffff), repeat('\0')),
	h2_goaway: () => chain(frame(GOAWAY, 0, 0, u32(0, 0))),
	h2_goaway_endless: (s) => repeat(frame(GOAWAY, 0, 0, u32(s, 0))),
	h2_push: (s) => chain(frame(PUSH, END_HEADERS, s, Buffer.concat([u32(2), Buffer.from([0x82, 0x86, 0x84])])), START(s)),
	h2_unknown_endless: () => repeat(frame(0xef, 0, 0, Buffer.alloc(100))),
	h2_hints_endless: (s) => repeat(frame(HEADERS, END_HEADERS, s, literal(':status', '103'))),
	h2_other_stream: (s) => chain(frame(DATA, 0, s + 1000, Buffer.alloc(100)), START(s)),
	h2_dribble: (s) => chain(START(s), dribble(frame(DATA, 0, s, Buffer.alloc(16384)))),
	grpc_4g: (s) => chain(START(s), frame(DATA, 0, s, Buffer.from([0, 255, 255, 255, 255, 1]))),
	grpc_lies: (s) => chain(START(s), frame(DATA, 0, s, Buffer.from([0, 0, 0, 0, 200, 1])), frame(HEADERS, END_HEADERS | END_STREAM, s, literal('grpc-status', '0'))),
	grpc_empty_endless: (s) => chain(START(s), repeat(frame(DATA, 0, s, Buffer.alloc(16380)))),
	grpc_words_10m: (s) => chain(START(s), block(s, Buffer.concat([literal('grpc-status', '13'), literal('grpc-message', '%'.repeat(10 * MIB))]))),
	grpc_status_wild: (s) => chain(frame(HEADERS, END_HEADERS | END_STREAM, s, Buffer.concat([GRPC, literal('grpc-status', '99999999999999999999'), literal('grpc-message', '%00%1b%zz')]))),
};

// ---- SSH ----

const IDENT = 'SSH-2.0-x\r\n';
const packet = (payload, length = payload.length + 9) => Buffer.concat([u32(length), Buffer.from([8]), payload, Buffer.alloc(8)]);
const kexinit = (names) => packet(Buffer.concat([Buffer.from([20]), Buffer.alloc(16), names, Buffer.alloc(5)]));

const SSH = {
	ssh_banner_endless: () => repeat('x'),
	ssh_banner_lines: () => repeat('hello\r\n'),
	ssh_ident_10m: () => chain('SSH-2.0-', repeat('x', 10 * MIB), '\r\n'),
	ssh_ident_nul: () => chain('SSH-2.0-\0\0\0\r\n', repeat('\0', 1000)),
	ssh_packet_4g: () => chain(IDENT, packet(Buffer.alloc(100), 0xffffffff), repeat('\0')),
	ssh_packet_2g: () => chain(IDENT, packet(Buffer.alloc(100), 0x7fffffff), repeat('\0')),
	ssh_packet_0: () => chain(IDENT, repeat(packet(Buffer.alloc(0), 0))),
	ssh_ignore_endless: () => chain(IDENT, repeat(packet(Buffer.concat([Buffer.from([2]), u32(2), Buffer.alloc(8)])))),
	ssh_debug_endless: () => chain(IDENT, repeat(packet(Buffer.concat([Buffer.from([4, 1]), u32(0xffffffff), Buffer.alloc(15)])))),
	ssh_kex_lengths: () => chain(IDENT, kexinit(Buffer.concat(Array(10).fill(u32(0xfffffff0))))),
	ssh_kex_names: () => chain(IDENT, kexinit(Buffer.concat([u32(30000), Buffer.alloc(30000, ','), ...Array(9).fill(u32(0))]))),
	ssh_disconnect: () => chain(IDENT, packet(Buffer.concat([Buffer.from([1]), u32(11, 0xffffffff), Buffer.alloc(15)]))),
	ssh_dribble: () => dribble(IDENT.repeat(1000)),
};

// ---- on the wire ----

// Sends the pieces as fast as the socket takes them, until it is closed.
function send(socket, pieces) {
	if (!socket) return; // its client has gone
	const more = () => {
		for (;;) {
			if (socket.destroyed || !socket.writable) return;
			const { value, done } = pieces.next();
			if (done) return;
			if (value.pause_ms) {
				socket.write(value.bytes);
				return void setTimeout(more, value.pause_ms);
			}
			if (!socket.write(value)) return void socket.once('drain', more);
		}
	};
	socket.on('error', () => {});
	more();
}

const http = (name, socket) => send(socket, one(HTTP, name)());
const h2 = (name, socket, stream) => send(socket, one(H2, name)(stream));
const ssh = (name, socket) => send(socket, one(SSH, name)());

function one(of, name) {
	if (!of[name]) throw new Error(`no extreme is called ${name}; there are ${Object.keys(of).join(', ')}`);
	return of[name];
}

// The stream of the first HEADERS frame, once all of what the client says first is there; 0: not yet.
function stream_in(heard) {
	for (let at = 24; at + 9 <= heard.length; at += 9 + heard.readUIntBE(at, 3)) if (heard[at + 3] === HEADERS) return heard.readUInt32BE(at + 5);
	return 0;
}

function serve(name) {
	const wire = HTTP[name] ? 'http' : H2[name] ? 'h2' : 'ssh';
	const server = net.createServer((socket) => {
		let heard = Buffer.alloc(0), begun = false;
		socket.on('error', () => {});
		if (wire === 'ssh') ssh(name, socket);
		if (wire === 'h2') socket.write(frame(SETTINGS, 0, 0));
		socket.on('data', (part) => {
			heard = begun ? heard : Buffer.concat([heard, part]);
			const stream = wire === 'h2' ? stream_in(heard) : 0;
			if (begun || !(wire === 'http' ? heard.includes('\r\n\r\n') : stream)) return;
			begun = wire !== 'http';
			heard = Buffer.alloc(0);
			if (wire === 'http') http(name, socket);
			else h2(name, socket, stream);
		});
	});
	return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve([name, { port: server.address().port, wire }])));
}

async function main(names) {
	const all = names.length ? names : [HTTP, H2, SSH].flatMap((of) => Object.keys(of));
	for (const name of all) if (!HTTP[name] && !H2[name]) one(SSH, name);
	process.stdout.write(`${JSON.stringify(Object.fromEntries(await Promise.all(all.map(serve))))}\n`);
	process.stdin.on('end', () => process.exit(0)).resume();
}

module.exports = { http, h2, ssh };
if (require.main === module) main(process.argv.slice(2));
