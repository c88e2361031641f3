'use strict';
// proto_check.js FILE.proto - holds each message, field and enum value of a file in the protobuf language against the vendor's
// own: same number, same type, one or many. A message that is nested is called Outer_Inner there; a map's entries may be any
// message of ours with key and value. Prints what differs, a line each; at the end how much was compared.

const fs = require('fs');
const path = require('path');

const PACKAGE = process.env.MD_PACKAGE || path.join(__dirname, '../../../build/modal');
const WIRE = { double: 1, float: 5, string: 2, bytes: 2 };
const VARINTS = ['int32', 'int64', 'uint32', 'uint64', 'sint32', 'sint64', 'bool'];

const camel = (name) => name.replace(/_([a-z0-9])/g, (all, c) => c.toUpperCase());

// What the vendor has: message -> field -> { number, type, many, entry }; enum value -> numbers.
function theirs(text) {
	const messages = new Map();
	for (const [, name, body] of text.matchAll(/^(?:var )?(\w+) = \{\n {2}encode\((?:message|_), writer[^]*?\n {2}decode\(input, length\) \{([^]*?)\n {2}\},\n/gm)) {
		const fields = new Map();
		for (const [, number, part] of body.matchAll(/case (\d+): \{([^]*?)\n {8}\}/g)) {
			const tag = Number((/tag [!=]== (\d+)/.exec(part) || [])[1]);
			const entry = (/const entry\d+ = (\w+)\.decode/.exec(part) || [])[1];
			const field = (/message\.(\w+)/.exec(part) || [])[1];
			const type = entry || (/(\w+)\.(?:unwrap\()?(?:\w+\.)?decode\(reader/.exec(part) || [])[1] || (/reader\.(\w+)\(/.exec(part.replace(/reader\.uint32\(\) \+ reader\.pos/, '')) || [])[1];
			if (field) fields.set(field, { number: Number(number), wire: tag & 7, type, many: !!entry || /\.push\(/.test(part), entry });
		}
		messages.set(name, fields);
	}
	const values = new Map();
	for (const [, number, name] of text.matchAll(/^ {4}case (-?\d+):\n {4}case "(\w+)":/gm)) values.set(name, [...(values.get(name) || []), Number(number)]);
	const whole = new Set(values.keys()); // of these enums every value is there; of others those that the client uses
	for (const [, number, name] of text.matchAll(/(-?\d+) \/\* ([A-Z][A-Z0-9_]+) \*\//g)) values.set(name, [...(values.get(name) || []), Number(number)]);
	return { messages, values, whole };
}

// What a file of ours has: { messages: [{ name, fields }], values }.
function ours(text) {
	const messages = [];
	const values = [];
	const stack = [];
	for (const token of text.replace(/\/\/.*|\/\*[^]*?\*\//g, '').match(/[^;{}]*[;{}]/g) || []) {
		const line = token.trim().replace(/\s+/g, ' ');
		const opened = /^(message|enum|oneof|service) (\w+) \{$/.exec(line);
		const field = /^(?:(optional|repeated|required) )?([\w.]+|map ?<[^>]+>) (\w+) = (\d+)/.exec(line);
		const value = /^(\w+) = (-?\d+)/.exec(line);
		const top = stack[stack.length - 1];
		if (opened) {
			const [, kind, name] = opened;
			const outer = stack.filter((s) => s.kind === 'message').map((s) => s.name);
			const one = { kind, name, fields: kind === 'oneof' ? top.fields : [], full: [...outer, name].join('_') };
			if (kind === 'message') messages.push(one);
			stack.push(one);
		} else if (line.endsWith('{')) stack.push({ kind: 'other', fields: [] });
		else if (line.endsWith('}')) stack.pop();
		else if (top && top.kind === 'enum' && value) values.push({ name: value[1], number: Number(value[2]), of: top.full });
		else if (top && field && ['message', 'oneof'].includes(top.kind)) top.fields.push({ many: field[1] === 'repeated' || field[2].startsWith('map'), type: field[2], name: field[3], number: Number(field[4]) });
	}
	return { messages, values };
}

function same_type(mine, other, find, outer) {
	if (VARINTS.includes(mine.type)) return other.wire === 0 && other.type === mine.type;
	if (mine.type in WIRE) return other.wire === WIRE[mine.type] && other.type === mine.type;
	if (other.wire !== 2 || other.type === 'string' || other.type === 'bytes') return false;
	if (other.entry) {
		if (mine.type.startsWith('map')) return true;
		const entry = find(mine.type, outer);
		return !!entry && entry.fields.map((f) => `${f.name} ${f.number}`).sort().join() === 'key 1,value 2';
	}
	const found = find(mine.type, outer);
	return found ? found.full === other.type || found.name === other.type : false;
}

function compare(file) {
	const vendor = theirs(fs.readFileSync(path.join(PACKAGE, 'node_modules/modal/dist/index.cjs'), 'utf8'));
	const mine = ours(fs.readFileSync(file, 'utf8'));
	const entries = new Set();
	const out = { bad: [], fields: 0, messages: 0, values: 0 };
	const find = (name, outer) => mine.messages.find((m) => m.full === `${outer.full}_${name}`) || mine.messages.find((m) => m.name === name.replace(/^.*\./, ''));
	for (const m of mine.messages) if (m.fields.map((f) => f.name).sort().join() === 'key,value') entries.add(m);
	for (const m of mine.messages) {
		if (entries.has(m)) continue;
		const known = vendor.messages.get(m.full);
		if (!known) {
			out.bad.push(`${m.full}: the vendor has no such message`);
			continue;
		}
		out.messages++;
		for (const f of m.fields) {
			const other = known.get(camel(f.name));
			out.fields++;
			if (!other) out.bad.push(`${m.full}.${f.name}: the vendor has no such field`);
			else if (other.number !== f.number || other.many !== f.many || !same_type(f, other, find, m))
				out.bad.push(`${m.full}.${f.name}: ours is ${f.many ? 'many ' : ''}${f.type} = ${f.number}, the vendor's ${other.many ? 'many ' : ''}${other.type} = ${other.number}`);
		}
	}
	for (const { name, number, of } of mine.values) {
		const known = vendor.values.get(name);
		if (!known && !mine.values.some((one) => one.of === of && vendor.whole.has(one.name))) continue;
		out.values++;
		if (!known) out.bad.push(`${name}: the vendor has no such value`);
		else if (!known.includes(number)) out.bad.push(`${name}: ours is ${number}, the vendor's ${[...new Set(known)].join(' or ')}`);
	}
	return out;
}

const { bad, fields, messages, values } = compare(process.argv[2]);
process.stdout.write(bad.map((line) => `${line}\n`).join(''));
process.stdout.write(`${messages} messages, ${fields} fields, ${values} values compared, ${bad.length} differ\n`);
process.exit(bad.length ? 1 : 0);
