// grpc_server.js - an HTTP/2 server that answers as it is told, well or badly. For test_grpc.c.
//
// A request's message is JSON: {"answers":[ANSWER...]}. The nth request with the same x-idempotency-key (message, without one) gets the nth answer (the
// last one for ever). An answer: status, type (of the content), head, trailers (objects of headers), pieces (hex, each a write of
// its own), zeros (a message of so many), bytewise (each byte a write of its own), and end: "trailers" (default), "only"
// (trailers-only), "none" (no trailers), "reset" (with code), "cut" (the connection, at once), "dead" (the same without a word), "hang". /t.Test/Heard answers with
// what was heard since the last time, as JSON in one message; /t.Test/Echo with the request's own message;
// /modal.client.ModalClient/NAME with what /t.Test/Can was told to answer there ({"NAME":"hex"}). The ports are the first line of stdout: in the clear, and with TLS when
// a key and a certificate are named (else 0). The end of stdin is ours.
'use strict';
const fs = require('fs');
const http2 = require('http2');

let connections = 0, requests = [], canned = {};
const times = new Map();

function frame(bytes) {
	const prefix = Buffer.alloc(5);
	prefix.writeUInt32BE(bytes.length, 1);
	return Buffer.concat([prefix, bytes]);
}

function write(stream, pieces, then) {
	if (!pieces.length || stream.destroyed) return then();
	stream.write(pieces[0], () => setImmediate(write, stream, pieces.slice(1), then));
}

function answer(stream, a) {
	if (stream.destroyed) return; // with its connection, before its request was read
	const head = { ':status': a.status || 200, 'content-type': a.type || 'application/grpc', ...a.head };
	const trailers = { 'grpc-status': '0', ...a.trailers };
	const end = a.end || 'trailers';
	let pieces = (a.pieces || []).map((hex) => Buffer.from(hex, 'hex'));
	if (a.bytewise) pieces = [...Buffer.concat(pieces)].map((byte) => Buffer.from([byte]));
	if (a.echo) pieces = [frame(a.echo)];
	if (a.zeros) pieces = [frame(Buffer.alloc(a.zeros))];
	if (end === 'cut') return [...sockets].forEach((socket) => socket.destroy()); // session.destroy() spoils Node's heap now and then
	if (end === 'dead') return [...sockets].forEach((socket) => socket.resetAndDestroy());
	if (end === 'hang' && !a.pieces) return;
	if (end === 'reset' && !a.pieces) return stream.close(a.code);
	if (end === 'only') return stream.respond({ ...head, ...trailers }, { endStream: true });
	if (end === 'trailers') {
		stream.respond(head, { waitForTrailers: true });
		stream.on('wantTrailers', () => stream.destroyed || stream.sendTrailers(trailers));
	} else {
		stream.respond(head);
	}
	write(stream, pieces, () => {
		if (end === 'reset') stream.close(a.code);
		else if (end !== 'hang') stream.end();
	});
}

function heard(stream, headers, body) {
	const path = headers[':path'];
	if (path === '/t.Test/Heard') {
		const text = JSON.stringify({ connections, requests });
		requests = [];
		times.clear();
		return answer(stream, { echo: Buffer.from(text) });
	}
	requests.push({ path, headers, bytes: body.length, framed: body.length >= 5 && body[0] === 0 && body.readUInt32BE(1) === body.length - 5 });
	if (path === '/t.Test/Can') {
		canned = JSON.parse(body.subarray(5).toString());
		return answer(stream, { echo: Buffer.alloc(0) });
	}
	if (path.startsWith('/modal.client.ModalClient/')) {
		const reply = canned[path.split('/')[2]];
		if (reply === undefined) return answer(stream, { end: 'only', trailers: { 'grpc-status': '12', 'grpc-message': 'not%20canned' } });
		return answer(stream, { echo: Buffer.from(reply, 'hex') });
	}
	if (path === '/t.Test/Echo') return answer(stream, { echo: body.subarray(5) });
	const key = headers['x-idempotency-key'] || body.toString('latin1'), nth = times.get(key) || 0;
	times.set(key, nth + 1);
	if (!requests.at(-1).framed) return; // cut off in the middle
	const { answers } = JSON.parse(body.subarray(5).toString());
	answer(stream, answers[Math.min(nth, answers.length - 1)]);
}

const sockets = new Set(); // the bare ones, below TLS
function listen(server, then) {
	server.on('connection', (socket) => {
		sockets.add(socket);
		socket.on('close', () => sockets.delete(socket)).on('error', () => {});
	});
	server.on('session', (session) => {
		connections++;
		session.on('error', () => {});
	});
	server.on('stream', (stream, headers) => {
		const parts = [];
		stream.on('error', () => {});
		stream.on('data', (part) => parts.push(part));
		stream.on('end', () => heard(stream, headers, Buffer.concat(parts)));
	});
	server.listen(0, '127.0.0.1', () => then(server.address().port));
}

const settings = { initialWindowSize: 4 << 20 };
const [key, cert] = process.argv.slice(2).map((file) => fs.readFileSync(file));
listen(http2.createServer({ settings }), (plain) => {
	if (!cert) return console.log(`${plain} 0`);
	listen(http2.createSecureServer({ key, cert, settings }), (secure) => console.log(`${plain} ${secure}`));
});
process.stdin.on('end', () => process.exit(0)).resume();
