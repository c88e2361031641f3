'use strict';
// tls_server.js - servers that a client should not trust. For Debian's own Node.
//
//   node tls_server.js DIR KIND [ARGUMENTS]     prints its port; what it hears goes to DIR/heard, a line "METHOD URL HEADERS" each; DIR/met is
//                                               there as soon as somebody has connected
//
//   tls CERT KEY [VERSION]    https that answers 401 to everything; VERSION: no other one ("TLSv1.1")
//   plain                     http, likewise
//   redirect STATUS URL       http that answers STATUS with this Location
//   redirect2 STATUS URL      the same over HTTP/2 without TLS

const fs = require('fs');
const http = require('http');
const http2 = require('http2');
const https = require('https');

const [dir, kind, ...args] = process.argv.slice(2);
const answer = JSON.stringify({ title: 'Unauthorized', status: 401, detail: 'who are you?' });

function note(method, url, headers) {
	fs.appendFileSync(`${dir}/heard`, `${method} ${url} ${JSON.stringify(headers)}\n`);
}
function refuse(req, res) {
	note(req.method, req.url, req.headers);
	res.writeHead(401, { 'Content-Type': 'application/json' }).end(answer);
}
function lead(req, res) {
	note(req.method, req.url, req.headers);
	res.writeHead(Number(args[0]), { Location: args[1], 'Content-Length': 0 }).end();
}
function make() {
	if (kind === 'plain') return http.createServer(refuse);
	if (kind === 'redirect') return http.createServer(lead);
	if (kind === 'redirect2') return http2.createServer(lead);
	const [cert, key, version] = args;
	const old = version ? { minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' } : {};
	return https.createServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key), ...old }, refuse);
}
const server = make();
server.on('connection', () => fs.appendFileSync(`${dir}/met`, '.'));
server.on('tlsClientError', (e) => fs.appendFileSync(`${dir}/handshakes`, `${e.code || e.message}\n`));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
