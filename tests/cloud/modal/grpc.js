'use strict';
// grpc.js - gRPC over HTTP/2 without TLS, as a server and as a client of single calls, with what the wire may do to a reply.
// How a reply travels, all optional:
//   split        each frame in pieces, also within its head        merge   two messages in one piece
//   rst_after N  the stream is reset after N messages (0: at once)   cut_after N   ... after N bytes of the body
//   reset        the connection is cut                             goaway  this stream is the last of its connection
//   late_error   an error in trailers, after headers               no_status   no grpc-status at all
//   hang_ms N    the answer comes so late, to what was carried out at once
//   extreme NAME  frames of common/extremes.js, to what was carried out
//   http N       an HTTP answer with this status instead           flag    the frames say that they are compressed

const fs = require('fs');
const http2 = require('http2');
const extremes = require('../common/extremes');

const HEAD = 5;
const MESSAGE_MAX = 100 << 20;

function frame(bytes, flag = 0) {
	const out = Buffer.alloc(HEAD + bytes.length);
	out[0] = flag;
	out.writeUInt32BE(bytes.length, 1);
	Buffer.from(bytes).copy(out, HEAD);
	return out;
}

// The messages of a body: { messages, error }.
function unframe(body) {
	const messages = [];
	for (let at = 0; at < body.length; ) {
		if (body.length - at < HEAD) return { messages, error: 'the body ends within a frame\'s head' };
		const len = body.readUInt32BE(at + 1);
		if (body[at] !== 0) return { messages, error: `compression flag ${body[at]}` };
		if (len > MESSAGE_MAX) return { messages, error: 'message too large' };
		if (body.length - at - HEAD < len) return { messages, error: 'the body ends within a frame' };
		messages.push(body.subarray(at + HEAD, at + HEAD + len));
		at += HEAD + len;
	}
	return { messages };
}

function escape(text) {
	return Buffer.from(text, 'utf8').reduce((out, b) => out + (b >= 0x20 && b < 0x7f && b !== 0x25 ? String.fromCharCode(b) : `%${b.toString(16).toUpperCase().padStart(2, '0')}`), '');
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Raw bytes beside Node's own frames, by the descriptor: the socket's handle belongs to the session.
class Wire {
	constructor(session) {
		this.session = session;
		this.left = Buffer.alloc(0);
		this.cut = false;
	}

	get destroyed() {
		return this.session.destroyed || this.cut;
	}

	get writable() {
		return !this.destroyed;
	}

	on() {}

	write(bytes) {
		this.left = Buffer.concat([this.left, bytes]);
		return this.flush();
	}

	flush() {
		try {
			while (this.left.length) this.left = this.left.subarray(fs.writeSync(this.session.fd, this.left));
			return true;
		} catch (e) {
			this.cut = e.code !== 'EAGAIN'; // the client has closed it; Node hears of that only once this ends
			return false;
		}
	}

	once(drain, then) {
		setTimeout(() => (this.destroyed || this.flush() ? then() : this.once(drain, then)), 5);
	}
}

class Reply {
	constructor(stream) {
		this.stream = stream;
		this.wire = {};
		this.begun = false;
		this.over = false;
		this.sent = 0;
		this.bytes = 0;
		this.held = null;
		this.order = Promise.resolve();
		stream.on('error', () => {});
		stream.on('close', () => (this.over = true));
	}

	begin() {
		if (this.begun || this.over) return;
		this.begun = true;
		this.stream.on('wantTrailers', () => this.over || this.stream.sendTrailers(this.trailers));
		this.stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto' }, { waitForTrailers: true });
	}

	send(bytes) {
		if (this.over) return;
		const { rst_after, flag, merge } = this.wire;
		if (rst_after !== undefined && this.sent >= rst_after) return void this.rst();
		this.begin();
		this.sent++;
		const one = frame(bytes, flag ? 1 : 0);
		if (merge && !this.held) this.held = one;
		else this.write(this.held ? Buffer.concat([this.held, one]) : one);
	}

	write(bytes) {
		this.held = null;
		this.order = this.order.then(async () => {
			const { cut_after, split } = this.wire;
			if (cut_after !== undefined && this.bytes + bytes.length > cut_after) {
				this.stream.write(bytes.subarray(0, cut_after - this.bytes));
				await pause(20);
				return this.rst();
			}
			this.bytes += bytes.length;
			if (!split) return void (this.over || this.stream.write(bytes));
			for (let at = 0, n = 1; at < bytes.length && !this.over; at += n, n = Math.min(n * 2 + 1, 4096)) {
				this.stream.write(bytes.subarray(at, at + n));
				await pause(2);
			}
		});
	}

	rst() {
		this.over = true;
		this.stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
	}

	// status: { code, message, details (base64) }
	end({ code = 0, message = '', details } = {}) {
		if (this.held) this.write(this.held);
		this.order = this.order.then(() => this.finish(code, message, details));
		return this.order;
	}

	finish(code, message, details) {
		const { rst_after, no_status, late_error, goaway } = this.wire;
		if (this.over) return;
		if (rst_after !== undefined && this.sent >= rst_after) return void this.rst();
		const status = { 'grpc-status': String(code) };
		if (message) status['grpc-message'] = escape(message);
		if (details) status['grpc-status-details-bin'] = details;
		this.trailers = no_status ? {} : status;
		if (goaway) this.stream.session.goaway(0, this.stream.id);
		if (code && !this.begun && !late_error && !no_status) {
			this.begun = this.over = true;
			this.stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto', ...status }, { endStream: true });
			return;
		}
		this.begin();
		this.stream.end();
	}

	http(status) {
		if (this.over || this.begun) return;
		this.begun = this.over = true;
		this.stream.respond({ ':status': status, 'content-type': 'text/html' });
		this.stream.end('<html><body><h1>no</h1></body></html>\n');
	}

	extreme(name) {
		this.over = true;
		extremes.h2(name, new Wire(this.stream.session), this.stream.id);
	}

	cut() {
		this.over = true;
		const { session } = this.stream;
		if (session && session.socket) session.destroy();
	}
}

// serve(path, headers, body, reply) is called once per call, when all of the request is there. tls: { key, cert }, or nothing.
function make_server(serve, tls) {
	const settings = { initialWindowSize: 1 << 20, maxConcurrentStreams: 100 };
	const server = tls ? http2.createSecureServer({ settings, ...tls }) : http2.createServer({ settings });
	const sessions = new Set();
	server.on('session', (session) => {
		sessions.add(session);
		session.on('error', () => {});
		session.on('close', () => sessions.delete(session));
	});
	server.on('sessionError', () => {});
	let newest;
	server.on('session', (session) => (newest = session));
	server.on('connection', (socket) => newest && newest.fd === undefined && (newest.fd = socket._handle.fd)); // for raw frames, without TLS
	server.on('stream', (stream, headers) => {
		const parts = [];
		const reply = new Reply(stream);
		stream.on('data', (part) => parts.push(part));
		stream.on('end', () => serve(headers[':path'], headers, Buffer.concat(parts), reply));
	});
	server.end_all = () => {
		server.close();
		for (const session of sessions) session.destroy();
	};
	return server;
}

// One call: { status, message, details, http, headers, trailers, messages, pieces, trailers_only, rst, error }.
function call(url, path, headers, bytes, { timeout_ms = 60000, ca } = {}) {
	return new Promise((resolve) => {
		const out = { http: 0, headers: {}, trailers: {}, messages: [], pieces: [], rst: 0 };
		const session = http2.connect(url, { ca });
		const parts = [];
		let done = false;
		const over = (error) => {
			if (done) return;
			done = true;
			clearTimeout(timer);
			session.destroy();
			if (error) out.error = String(error.code || error.message || error);
			const { messages, error: broken } = unframe(Buffer.concat(parts));
			const last = 'grpc-status' in out.trailers ? out.trailers : out.headers;
			out.messages = messages;
			out.broken = broken;
			out.trailers_only = 'grpc-status' in out.headers;
			out.status = last['grpc-status'] === undefined ? null : Number(last['grpc-status']);
			out.message = decodeURIComponent(last['grpc-message'] || '');
			out.details = last['grpc-status-details-bin'];
			resolve(out);
		};
		const timer = setTimeout(() => over(new Error('timeout')), timeout_ms);
		session.on('error', over);
		session.on('close', () => over(out.status === undefined && !out.ended ? new Error('connection lost') : undefined));
		const stream = session.request({ ':method': 'POST', ':path': path, ...headers });
		stream.on('response', (head) => {
			out.http = head[':status'];
			out.headers = { ...head };
		});
		stream.on('trailers', (trailers) => (out.trailers = { ...trailers }));
		stream.on('data', (part) => {
			parts.push(part);
			out.pieces.push(part.length);
		});
		stream.on('error', () => {});
		stream.on('close', () => {
			out.rst = stream.rstCode;
			out.ended = true;
			over(out.rst ? new Error(`stream reset ${out.rst}`) : undefined);
		});
		stream.end(frame(bytes));
	});
}

module.exports = { make_server, call, unframe, pause };
