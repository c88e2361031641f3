'use strict';
// graphql.js - as much of GraphQL as clients of the old API write: one operation, arguments, variables, aliases, inline
// selections. execute() gives { data } or { errors }, always for HTTP 200.

function tokens(text) {
	const list = [];
	const pattern = /[\s,]+|#[^\n]*|"""[\s\S]*?"""|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[_A-Za-z]\w*|\.\.\.|[{}()[\]:!$=@|&]/y;
	while (pattern.lastIndex < text.length) {
		const at = pattern.lastIndex;
		const found = pattern.exec(text);
		if (!found) throw new Error(`Syntax Error: Unexpected character: "${text[at]}".`);
		if (!/^[\s,#]/.test(found[0])) list.push(found[0]);
	}
	return list;
}

class Parser {
	constructor(text) {
		this.list = tokens(text);
		this.at = 0;
	}
	peek() {
		return this.list[this.at];
	}
	next(want) {
		const token = this.list[this.at++];
		if (token === undefined || (want !== undefined && token !== want))
			throw new Error(`Syntax Error: Expected "${want}", found ${token === undefined ? '<EOF>' : `"${token}"`}.`);
		return token;
	}
	operation() {
		let type = 'query';
		const defaults = {};
		if (this.peek() !== '{') {
			type = this.next();
			if (type !== 'query' && type !== 'mutation') throw new Error(`Syntax Error: Unexpected Name "${type}".`);
			if (/^\w/.test(this.peek())) this.next();
			if (this.peek() === '(') this.variables(defaults);
		}
		return { type, defaults, fields: this.selection() };
	}
	variables(defaults) {
		this.next('(');
		while (this.peek() !== ')') {
			this.next('$');
			const name = this.next();
			this.next(':');
			while (!['$', '=', ')', undefined].includes(this.peek())) this.next();
			if (this.peek() === '=') {
				this.next('=');
				defaults[name] = this.value();
			}
		}
		this.next(')');
	}
	selection() {
		const fields = [];
		this.next('{');
		while (this.peek() !== '}') {
			let name = this.next();
			let alias = name;
			if (this.peek() === ':') {
				this.next(':');
				name = this.next();
			} else alias = name;
			const args = this.peek() === '(' ? this.args() : {};
			fields.push({ name, alias, args, fields: this.peek() === '{' ? this.selection() : null });
		}
		this.next('}');
		if (!fields.length) throw new Error('Syntax Error: Expected Name, found "}".');
		return fields;
	}
	args() {
		const args = {};
		this.next('(');
		while (this.peek() !== ')') {
			const name = this.next();
			this.next(':');
			args[name] = this.value();
		}
		this.next(')');
		return args;
	}
	value() {
		const token = this.next();
		if (token === '$') return { variable: this.next() };
		if (token === '[') {
			const items = [];
			while (this.peek() !== ']') items.push(this.value());
			this.next(']');
			return { list: items };
		}
		if (token === '{') {
			const object = {};
			while (this.peek() !== '}') {
				const name = this.next();
				this.next(':');
				object[name] = this.value();
			}
			this.next('}');
			return { object };
		}
		if (token.startsWith('"""')) return { is: token.slice(3, -3) };
		if (token.startsWith('"')) return { is: JSON.parse(token) };
		if (/^-?\d/.test(token)) return { is: Number(token) };
		if (token === 'true' || token === 'false') return { is: token === 'true' };
		if (token === 'null') return { is: null };
		return { is: token, bare: true };
	}
}

function resolve_value(value, variables) {
	if (value.variable !== undefined) {
		if (!(value.variable in variables)) return undefined;
		return variables[value.variable];
	}
	if (value.list) return value.list.map((v) => resolve_value(v, variables));
	if (value.object) return Object.fromEntries(Object.entries(value.object).map(([k, v]) => [k, resolve_value(v, variables)]));
	return value.is;
}

function pick(value, field, variables) {
	if (value === null || value === undefined) return null;
	if (Array.isArray(value)) return value.map((one) => pick(one, field, variables));
	if (typeof value !== 'object') return value;
	if (!field.fields)
		throw new Error(`Field "${field.name}" must have a selection of subfields. Did you mean "${field.name} { ... }"?`);
	const out = {};
	for (const sub of field.fields) {
		let got = value[sub.name];
		if (got === undefined) throw new Error(`Cannot query field "${sub.name}".`);
		if (typeof got === 'function') got = got(args_of(sub, variables));
		out[sub.alias] = pick(got, sub, variables);
	}
	return out;
}

function args_of(field, variables) {
	return Object.fromEntries(Object.entries(field.args).map(([k, v]) => [k, resolve_value(v, variables)]));
}

// The names of the operation's own fields, for the log and the faults; [] when it does not parse.
function fields_of(query) {
	try {
		return new Parser(String(query)).operation().fields.map((f) => f.name);
	} catch (e) {
		return [];
	}
}

// resolvers: { query: {name: (args) => value}, mutation: {...} }; one that throws gives an error and null.
function execute(query, variables, resolvers) {
	const data = {};
	const errors = [];
	let operation;
	try {
		operation = new Parser(String(query)).operation();
	} catch (e) {
		return { errors: [{ message: e.message, extensions: { code: 'GRAPHQL_PARSE_FAILED' } }] };
	}
	const known = {
		...Object.fromEntries(Object.entries(operation.defaults).map(([k, v]) => [k, resolve_value(v, {})])),
		...(variables || {}),
	};
	for (const field of operation.fields) {
		const resolver = resolvers[operation.type][field.name];
		if (!resolver)
			return { errors: [{ message: `Cannot query field "${field.name}" on type "${operation.type === 'query' ? 'Query' : 'Mutation'}".`,
				extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }] };
		try {
			data[field.alias] = pick(resolver(args_of(field, known)), field, known);
		} catch (e) {
			data[field.alias] = null;
			errors.push({ message: e.message, path: [field.alias], extensions: { code: e.code || 'RUNPOD' } });
		}
	}
	return errors.length ? { errors, data } : { data };
}

module.exports = { execute, fields_of };
