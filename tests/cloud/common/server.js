'use strict';
// server.js - what the stand-ins' servers have in common: their options, names by a seed, settings, requests on file.

const crypto = require('crypto');
const fs = require('fs');
const path = require('path');

// Of a stand-in's command line: { state, port, seed, podbox, fast, tied }, and `flags` of its own.
function options(flags = []) {
	const out = { port: 0, seed: crypto.randomInt(1 << 30), fast: false, tied: false };
	const args = process.argv.slice(2);
	while (args.length) {
		const name = args.shift().replace(/^--/, '');
		if (['fast', 'tied', ...flags].includes(name)) out[name] = true;
		else if (['state', 'port', 'seed', 'podbox'].includes(name) && args.length) out[name] = args.shift();
		else throw new Error(`what is --${name}?`);
	}
	if (!out.state) throw new Error('--state DIR is missing');
	out.podbox = out.podbox || path.join(__dirname, '../../../build/tests/podbox');
	return out;
}

// Settings: a group is gone into, except where its name is in `whole`.
function merge(into, from, whole = []) {
	for (const [key, value] of Object.entries(from)) {
		const both = value && into[key] && typeof value === 'object' && typeof into[key] === 'object' && !Array.isArray(value);
		if (both && !whole.includes(key)) merge(into[key], value, whole);
		else into[key] = value;
	}
	return into;
}

// Names and ids by the seed, never used twice.
function make_random(seed, letters) {
	let n = 0;
	return (length) => {
		const bytes = crypto.createHash('sha512').update(`${seed}/${n++}`).digest();
		return Array.from({ length }, (x, i) => letters[bytes[i % 64] % letters.length]).join('');
	};
}

function record(world, entry) {
	world.requests.push(entry);
	fs.appendFileSync(path.join(world.dir, 'requests.jsonl'), JSON.stringify(entry) + '\n');
}

function listen(server, port) {
	return new Promise((resolve, reject) => {
		server.on('error', reject);
		server.listen(port, '127.0.0.1', () => resolve(server.address().port));
	});
}

function keep_file(world, name, text) {
	fs.writeFileSync(path.join(world.dir, name), `${text}\n`, { mode: 0o600 });
}

module.exports = { options, merge, make_random, record, listen, keep_file };
