'use strict';
// websocket.js - the server's half of `kubectl exec`: WebSocket with the subprotocol v5.channel.k8s.io, in which the first byte of
// each message is its channel: 0 stdin, 1 stdout, 2 stderr, 3 the status, 255 "this channel ends" (KEP-4006).

const crypto = require('crypto');

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'; // RFC 6455
const STDIN = 0, STDOUT = 1, STDERR = 2, STATUS = 3, CLOSE = 255;
const BINARY = 2, CLOSING = 8, PING = 9, PONG = 10;

function frame(opcode, payload) {
	let head;
	if (payload.length < 126) {
		head = Buffer.from([0x80 | opcode, payload.length]);
	} else if (payload.length < 65536) {
		head = Buffer.from([0x80 | opcode, 126, 0, 0]);
		head.writeUInt16BE(payload.length, 2);
	} else {
		head = Buffer.alloc(10);
		head[0] = 0x80 | opcode;
		head[1] = 127;
		head.writeBigUInt64BE(BigInt(payload.length), 2);
	}
	return Buffer.concat([head, payload]);
}

// Takes one whole frame off the bytes: { opcode, payload, rest }, or null if it is not whole yet.
function take_frame(bytes) {
	if (bytes.length < 2) return null;
	let length = bytes[1] & 127;
	let at = 2;
	if (length === 126) {
		if (bytes.length < 4) return null;
		length = bytes.readUInt16BE(2);
		at = 4;
	} else if (length === 127) {
		if (bytes.length < 10) return null;
		length = Number(bytes.readBigUInt64BE(2));
		at = 10;
	}
	const masked = bytes[1] & 0x80;
	if (bytes.length < at + (masked ? 4 : 0) + length) return null;
	if (!masked) return { opcode: bytes[0] & 15, payload: bytes.subarray(at, at + length), rest: bytes.subarray(at + length) };
	const mask = bytes.subarray(at, at + 4);
	const payload = Buffer.from(bytes.subarray(at + 4, at + 4 + length));
	for (let i = 0; i < length; i++) payload[i] ^= mask[i & 3];
	return { opcode: bytes[0] & 15, payload, rest: bytes.subarray(at + 4 + length) };
}

function status_of(code) {
	if (code === 0) return { metadata: {}, status: 'Success' };
	return {
		metadata: {},
		status: 'Failure',
		message: `command terminated with non-zero exit code: exit status ${code}`,
		reason: 'NonZeroExitCode',
		details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
	};
}

// Carries a process over an upgraded connection. does: { no_status: nothing says how it ended; no_eof: its stdin never ends; no_end: nor
// does the connection, once it has ended; cut_after_bytes; idle_cut_ms: without a byte for so long, as a load balancer does; mute }.
function carry(req, socket, head, child, does) {
	const accept = crypto.createHash('sha1').update(req.headers['sec-websocket-key'] + GUID).digest('base64');
	socket.write(
		'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
			`Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n`,
	);
	socket.setNoDelay(true);
	let carried = 0;
	let idle = null;
	const moves = () => {
		if (!does.idle_cut_ms) return;
		clearTimeout(idle);
		idle = setTimeout(() => socket.destroy(), does.idle_cut_ms);
	};
	moves();
	const send = (channel, bytes) => {
		if (socket.destroyed || does.mute) return true;
		moves();
		carried += bytes.length;
		if (does.cut_after_bytes && carried > does.cut_after_bytes) return void socket.destroy();
		return socket.write(frame(BINARY, Buffer.concat([Buffer.from([channel]), bytes])));
	};
	for (const [channel, stream] of [[STDOUT, child.stdout], [STDERR, child.stderr]])
		stream.on('data', (bytes) => {
			if (send(channel, bytes) !== false) return;
			stream.pause();
			socket.once('drain', () => stream.resume());
		});
	child.stdin.on('error', () => {});
	child.on('error', () => socket.destroy());
	child.on('close', (code, signal) => {
		if (socket.destroyed || does.mute || does.no_end) return;
		if (!does.no_status) {
			send(STATUS, Buffer.from(JSON.stringify(status_of(signal ? 137 : code))));
			socket.write(frame(CLOSING, Buffer.from([0x03, 0xe8])));
		}
		socket.end();
	});
	let rest = head;
	const hear = (bytes) => {
		moves();
		rest = rest.length ? Buffer.concat([rest, bytes]) : bytes;
		for (let one; (one = take_frame(rest)); ) {
			rest = one.rest;
			if (one.opcode === PING && !does.mute) socket.write(frame(PONG, one.payload));
			else if (one.opcode === CLOSING) socket.end();
			else if (one.payload[0] === STDIN && one.opcode !== PING) feed(one.payload.subarray(1));
			else if (one.payload[0] === CLOSE && !does.no_eof) child.stdin.end();
		}
	};
	const feed = (bytes) => {
		carried += bytes.length;
		if (does.cut_after_bytes && carried > does.cut_after_bytes) return void socket.destroy();
		if (child.stdin.write(bytes)) return;
		socket.pause();
		child.stdin.once('drain', () => socket.resume());
	};
	socket.on('data', hear);
	socket.on('error', () => {});
	socket.on('close', () => clearTimeout(idle));
	socket.on('close', () => child.stdin.destroy()); // the process itself stays, as at a real kubelet
	hear(Buffer.alloc(0));
}

module.exports = { carry };
