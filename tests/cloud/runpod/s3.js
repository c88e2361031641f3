'use strict';
// s3.js - the S3-compatible API in front of the network volumes: path style, bucket = volume id, key = path on the volume.
// Every request's SigV4 signature is worked out again from what arrived.

const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const clock = require('../common/clock');
const extremes = require('../common/extremes');

const PART_MAX = 500 * 1000 * 1000;
const UPLOADS = '.s3compat_uploads';
const UNSIGNED = 'UNSIGNED-PAYLOAD';
const SKEW_MS = 3600e3;
const SUBRESOURCES = ['acl', 'policy', 'tagging', 'encryption', 'versioning', 'lifecycle', 'cors', 'location', 'object-lock',
	'retention', 'legal-hold', 'restore', 'torrent', 'delete', 'website', 'logging', 'notification', 'replication'];

class S3Error extends Error {
	constructor(status, code, message) {
		super(message || code);
		this.status = status;
		this.code = code;
	}
}

const hash = (data) => crypto.createHash('sha256').update(data).digest('hex');
const hmac = (key, data) => crypto.createHmac('sha256', key).update(data).digest();
const encode = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);

function decode(text) {
	try {
		return decodeURIComponent(text);
	} catch (e) {
		throw new S3Error(400, 'InvalidURI');
	}
}

function query_pairs(search) {
	return search
		.replace(/^\?/, '')
		.split('&')
		.filter(Boolean)
		.map((pair) => {
			const at = pair.indexOf('=');
			return at < 0 ? [decode(pair), ''] : [decode(pair.slice(0, at)), decode(pair.slice(at + 1))];
		});
}

// ---- the signature ----

function authorization(req) {
	const text = req.headers.authorization || '';
	const found = /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(text);
	if (!text) throw new S3Error(403, 'AccessDenied', 'Access Denied');
	if (!found) throw new S3Error(400, 'AuthorizationHeaderMalformed', 'The authorization header is malformed.');
	const [, key, date, region, service, headers, signature] = found;
	return { key, date, region, service, headers: headers.split(';'), signature };
}

function canonical(req, url, auth, payload) {
	const pairs = query_pairs(url.search).map(([k, v]) => [encode(k), encode(v)]);
	pairs.sort(([a, av], [b, bv]) => (a < b ? -1 : a > b ? 1 : av < bv ? -1 : av > bv ? 1 : 0));
	const uri = url.raw_path.split('/').map((part) => encode(decode(part))).join('/');
	const headers = auth.headers.map((name) => `${name}:${String(req.headers[name] || '').trim().replace(/ +/g, ' ')}\n`).join('');
	return [req.method, uri, pairs.map(([k, v]) => `${k}=${v}`).join('&'), headers, auth.headers.join(';'), payload].join('\n');
}

function check_signature(req, url, world) {
	const auth = authorization(req);
	const { access, secret } = world.s3_keys;
	const stamp = req.headers['x-amz-date'] || '';
	const payload = req.headers['x-amz-content-sha256'];
	const when = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(stamp);

	if (auth.key !== access)
		throw new S3Error(403, 'InvalidAccessKeyId', 'The AWS Access Key Id you provided does not exist in our records.');
	if (!when || !stamp.startsWith(auth.date)) throw new S3Error(403, 'AccessDenied', 'AWS authentication requires a valid Date or x-amz-date header');
	if (!payload) throw new S3Error(400, 'InvalidRequest', 'Missing required header for this request: x-amz-content-sha256');
	if (/^STREAMING-/.test(payload)) throw new S3Error(501, 'NotImplemented', 'A header you provided implies functionality that is not implemented');
	const at = Date.UTC(+when[1], when[2] - 1, +when[3], +when[4], +when[5], +when[6]);
	if (Math.abs(at - (clock.now() + world.settings.s3_clock_ms)) > SKEW_MS)
		throw new S3Error(403, 'RequestTimeTooSkewed', 'The difference between the request time and the current time is too large.');
	if (!auth.headers.includes('host') || !auth.headers.includes('x-amz-date'))
		throw new S3Error(403, 'AccessDenied', 'There were headers present in the request which were not signed');
	const absent = auth.headers.filter((h) => !(h in req.headers));
	if (absent.length)
		throw new S3Error(403, 'SignatureDoesNotMatch', `Headers are signed that were not sent: ${absent.join(', ')}`);
	const unsigned = Object.keys(req.headers).filter((h) => h.startsWith('x-amz-') && !auth.headers.includes(h));
	if (unsigned.length)
		throw new S3Error(403, 'AccessDenied', `There were headers present in the request which were not signed: ${unsigned.join(', ')}`);
	const scope = `${auth.date}/${auth.region}/${auth.service}/aws4_request`;
	const text = ['AWS4-HMAC-SHA256', stamp, scope, hash(canonical(req, url, auth, payload))].join('\n');
	const key = [auth.date, auth.region, auth.service, 'aws4_request'].reduce((k, part) => hmac(k, part), `AWS4${secret}`);
	const want = hmac(key, text).toString('hex');
	if (auth.service !== 's3' || want !== auth.signature)
		throw new S3Error(403, 'SignatureDoesNotMatch', 'The request signature we calculated does not match the signature you provided. Check your key and signing method.');
	return auth;
}

function check_region(auth, volume, world) {
	const same = world.settings.s3_region_exact
		? auth.region === volume.dataCenter
		: auth.region.toUpperCase() === volume.dataCenter.toUpperCase();
	if (!same)
		throw new S3Error(400, 'AuthorizationHeaderMalformed', `The authorization header is malformed; the region '${auth.region}' is wrong; expecting '${volume.dataCenter}'`);
}

// ---- bodies ----

// Streams the body into a file beside the target; gives its MD5. The hash of the body must be what was signed.
async function receive(req, file, max) {
	const want = req.headers['x-amz-content-sha256'];
	const sha = crypto.createHash('sha256');
	const md5 = crypto.createHash('md5');
	const out = await fs.promises.open(file, 'w');
	let bytes = 0;
	try {
		for await (const part of req) {
			bytes += part.length;
			if (bytes > max) throw new S3Error(400, 'EntityTooLarge', 'Your proposed upload exceeds the maximum allowed size');
			sha.update(part);
			md5.update(part);
			await out.write(part);
		}
	} finally {
		await out.close();
	}
	if (want !== UNSIGNED && want !== sha.digest('hex')) {
		fs.rmSync(file, { force: true });
		throw new S3Error(400, 'XAmzContentSHA256Mismatch', "The provided 'x-amz-content-sha256' header does not match what was computed.");
	}
	return { bytes, md5: md5.digest('hex') };
}

async function read_text(req, max = 8 << 20) {
	const parts = [];
	let bytes = 0;
	for await (const part of req) {
		bytes += part.length;
		if (bytes > max) throw new S3Error(400, 'EntityTooLarge');
		parts.push(part);
	}
	return Buffer.concat(parts).toString('utf8');
}

function xml(name, inner) {
	return `<?xml version="1.0" encoding="UTF-8"?>\n<${name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${inner}</${name}>`;
}

// ---- the volume's files ----

function key_path(folder, key) {
	const parts = key.split('/');
	if (parts.some((p) => p === '..' || p === '.') || key.includes('\0')) throw new S3Error(400, 'InvalidArgument', 'invalid key');
	return path.join(folder, key);
}

function stat_object(file) {
	try {
		const st = fs.statSync(file);
		if (st.isFile()) return st;
	} catch (e) {
		/* below */
	}
	throw new S3Error(404, 'NoSuchKey', 'The specified key does not exist.');
}

function etag_of(world, file, st) {
	const known = world.etags.get(file);
	if (known && known.mtime === st.mtimeMs && known.size === st.size) return known.etag;
	const etag = crypto.createHash('md5').update(fs.readFileSync(file)).digest('hex');
	world.etags.set(file, { etag, mtime: st.mtimeMs, size: st.size });
	return etag;
}

function remember(world, file, etag) {
	const st = fs.statSync(file);
	world.etags.set(file, { etag, mtime: st.mtimeMs, size: st.size });
}

function walk(folder, rel, out) {
	const entries = fs.readdirSync(path.join(folder, rel), { withFileTypes: true });
	if (rel && !entries.length) out.push(`${rel}/`);
	for (const entry of entries) {
		const name = rel ? `${rel}/${entry.name}` : entry.name;
		if (name === UPLOADS) continue;
		if (entry.isDirectory()) walk(folder, name, out);
		else if (entry.isFile()) out.push(name);
	}
	return out;
}

function put_in_place(temporary, target) {
	try {
		fs.mkdirSync(path.dirname(target), { recursive: true });
		fs.renameSync(temporary, target);
	} catch (e) {
		fs.rmSync(temporary, { force: true });
		throw new S3Error(400, 'InvalidArgument', `cannot store the object: ${e.code}`);
	}
}

// ---- operations ----

const ops = {
	async PutObject(c) {
		const temporary = c.temporary();
		const { md5 } = await receive(c.req, temporary, PART_MAX);
		const target = key_path(c.folder, c.key);
		if (c.key.endsWith('/')) {
			fs.rmSync(temporary);
			fs.mkdirSync(target, { recursive: true });
		} else if (c.does.lose) {
			fs.rmSync(temporary);
		} else {
			put_in_place(temporary, target);
			remember(c.world, target, md5);
		}
		c.reply(200, { ETag: `"${md5}"` });
	},

	async CopyObject(c) {
		const [bucket, ...rest] = decode(c.req.headers['x-amz-copy-source']).replace(/^\//, '').split('/');
		const volume = c.world.volumes.get(bucket);
		if (!volume) throw new S3Error(404, 'NoSuchBucket');
		const from = key_path(c.world.volumes.folder(bucket), rest.join('/'));
		const st = stat_object(from);
		const temporary = c.temporary();
		fs.copyFileSync(from, temporary);
		put_in_place(temporary, key_path(c.folder, c.key));
		c.reply_xml(200, 'CopyObjectResult', `<LastModified>${new Date(st.mtimeMs).toISOString()}</LastModified><ETag>&quot;${etag_of(c.world, from, st)}&quot;</ETag>`);
	},

	async GetObject(c) {
		const file = key_path(c.folder, c.key);
		const st = stat_object(file);
		const head = {
			'Content-Type': 'application/octet-stream',
			'Accept-Ranges': 'bytes',
			'Last-Modified': new Date(st.mtimeMs).toUTCString(),
			ETag: `"${etag_of(c.world, file, st)}"`,
		};
		const range = /^bytes=(\d*)-(\d*)$/.exec(c.req.headers.range || '');
		let [from, to, status] = [0, st.size - 1, 200];
		if (range && (range[1] || range[2])) {
			from = range[1] ? Number(range[1]) : Math.max(0, st.size - Number(range[2]));
			to = range[1] && range[2] ? Math.min(Number(range[2]), st.size - 1) : st.size - 1;
			status = 206;
			if (from > to || from >= st.size) throw new S3Error(416, 'InvalidRange', 'The requested range is not satisfiable');
			head['Content-Range'] = `bytes ${from}-${to}/${st.size}`;
		}
		head['Content-Length'] = to - from + 1;
		c.res.writeHead(status, head);
		if (c.req.method === 'HEAD' || st.size === 0) return void c.res.end();
		await new Promise((resolve) => fs.createReadStream(file, { start: from, end: to }).on('error', resolve).pipe(c.res).on('close', resolve));
	},

	async HeadObject(c) {
		return ops.GetObject(c);
	},

	async DeleteObject(c) {
		const file = key_path(c.folder, c.key);
		try {
			if (fs.statSync(file).isDirectory()) fs.rmdirSync(file);
			else fs.unlinkSync(file);
		} catch (e) {
			/* S3 says 204 all the same */
		}
		c.reply(204, {});
	},

	async HeadBucket(c) {
		c.reply(200, { 'x-amz-bucket-region': c.volume.dataCenter });
	},

	async ListBuckets(c) {
		const all = [...c.world.volumes.all.values()].filter((v) => !v.deleted_ms);
		const buckets = all.map((v) => `<Bucket><Name>${v.id}</Name><CreationDate>${clock.iso(v.created_ms)}</CreationDate></Bucket>`);
		c.reply_xml(200, 'ListAllMyBucketsResult', `<Owner><ID>user</ID></Owner><Buckets>${buckets.join('')}</Buckets>`);
	},

	async ListObjectsV2(c) {
		const get = (name) => c.query.get(name) || '';
		const [prefix, delimiter] = [get('prefix'), get('delimiter')];
		const max = c.query.has('max-keys') ? Math.min(Number(get('max-keys')), 1000) : 1000;
		const token = get('continuation-token');
		const start = token ? Buffer.from(token, 'base64').toString('utf8') : get('start-after');
		const entries = new Map();
		for (const key of walk(c.folder, '', [])) {
			if (!key.startsWith(prefix)) continue;
			const cut = delimiter ? key.indexOf(delimiter, prefix.length) : -1;
			if (cut >= 0) entries.set(key.slice(0, cut + delimiter.length), 'prefix');
			else entries.set(key, 'key');
		}
		const names = [...entries.keys()].filter((k) => k > start).sort((a, b) => (a < b ? -1 : 1));
		const page = names.slice(0, max);
		const more = names.length > page.length;
		const contents = page.filter((k) => entries.get(k) === 'key').map((key) => {
			const file = path.join(c.folder, key);
			const st = fs.statSync(file);
			const folder = st.isDirectory();
			return `<Contents><Key>${escape(key)}</Key><LastModified>${new Date(st.mtimeMs).toISOString()}</LastModified><ETag>&quot;${folder ? hash('').slice(0, 32) : etag_of(c.world, file, st)}&quot;</ETag><Size>${folder ? 0 : st.size}</Size><StorageClass>STANDARD</StorageClass></Contents>`;
		});
		const prefixes = page.filter((k) => entries.get(k) === 'prefix').map((k) => `<CommonPrefixes><Prefix>${escape(k)}</Prefix></CommonPrefixes>`);
		const next = c.does.same_token ? token || Buffer.from(page[0] || '').toString('base64') : more ? Buffer.from(page[page.length - 1]).toString('base64') : '';
		c.reply_xml(200, 'ListBucketResult', `<Name>${c.volume.id}</Name><Prefix>${escape(prefix)}</Prefix><KeyCount>${page.length}</KeyCount><MaxKeys>${max}</MaxKeys>` +
			(delimiter ? `<Delimiter>${escape(delimiter)}</Delimiter>` : '') +
			`<IsTruncated>${more || !!c.does.same_token}</IsTruncated>${next ? `<NextContinuationToken>${next}</NextContinuationToken>` : ''}${contents.join('')}${prefixes.join('')}`);
	},

	async CreateMultipartUpload(c) {
		const id = c.world.random_id(24);
		fs.mkdirSync(c.upload_dir(id), { recursive: true });
		fs.writeFileSync(path.join(c.upload_dir(id), 'key'), c.key);
		c.reply_xml(200, 'InitiateMultipartUploadResult', `<Bucket>${c.volume.id}</Bucket><Key>${escape(c.key)}</Key><UploadId>${id}</UploadId>`);
	},

	async UploadPart(c) {
		const dir = c.upload();
		const n = Number(c.query.get('partNumber'));
		if (!Number.isInteger(n) || n < 1 || n > 10000) throw new S3Error(400, 'InvalidArgument', 'Part number must be an integer between 1 and 10000, inclusive');
		const temporary = c.temporary();
		const { md5 } = await receive(c.req, temporary, PART_MAX);
		fs.renameSync(temporary, path.join(dir, `part-${n}`));
		fs.writeFileSync(path.join(dir, `etag-${n}`), md5);
		c.reply(200, { ETag: `"${md5}"` });
	},

	async ListParts(c) {
		const dir = c.upload();
		const parts = fs.readdirSync(dir).filter((f) => f.startsWith('part-')).map((f) => Number(f.slice(5))).sort((a, b) => a - b)
			.map((n) => `<Part><PartNumber>${n}</PartNumber><ETag>&quot;${fs.readFileSync(path.join(dir, `etag-${n}`))}&quot;</ETag><Size>${fs.statSync(path.join(dir, `part-${n}`)).size}</Size></Part>`);
		c.reply_xml(200, 'ListPartsResult', `<Bucket>${c.volume.id}</Bucket><Key>${escape(c.key)}</Key><UploadId>${escape(c.query.get('uploadId'))}</UploadId><IsTruncated>false</IsTruncated>${parts.join('')}`);
	},

	async ListMultipartUploads(c) {
		const dir = path.join(c.folder, UPLOADS);
		const ids = fs.existsSync(dir) ? fs.readdirSync(dir).filter((id) => fs.existsSync(path.join(dir, id, 'key'))) : [];
		const list = ids.map((id) => `<Upload><Key>${escape(fs.readFileSync(path.join(dir, id, 'key'), 'utf8'))}</Key><UploadId>${id}</UploadId></Upload>`);
		c.reply_xml(200, 'ListMultipartUploadsResult', `<Bucket>${c.volume.id}</Bucket><IsTruncated>false</IsTruncated>${list.join('')}`);
	},

	async AbortMultipartUpload(c) {
		fs.rmSync(c.upload(), { recursive: true });
		c.reply(204, {});
	},

	async CompleteMultipartUpload(c) {
		const dir = c.upload();
		const text = await read_text(c.req);
		const asked = [...text.matchAll(/<Part>([\s\S]*?)<\/Part>/g)].map(([, part]) => ({
			n: Number((/<PartNumber>(\d+)</.exec(part) || [])[1]),
			etag: ((/<ETag>(?:&quot;|")?([^<&"]*)/.exec(part) || [])[1] || '').trim(),
		}));
		if (!asked.length) throw new S3Error(400, 'MalformedXML', 'The XML you provided was not well-formed or did not validate against our published schema');
		const temporary = c.temporary();
		const md5 = crypto.createHash('md5');
		fs.writeFileSync(temporary, '');
		asked.forEach(({ n, etag }, i) => {
			const part = path.join(dir, `part-${n}`);
			if (i && n <= asked[i - 1].n) throw new S3Error(400, 'InvalidPartOrder');
			if (!fs.existsSync(part) || fs.readFileSync(path.join(dir, `etag-${n}`), 'utf8') !== etag)
				throw new S3Error(400, 'InvalidPart', 'One or more of the specified parts could not be found.');
			fs.appendFileSync(temporary, fs.readFileSync(part));
			md5.update(Buffer.from(etag, 'hex'));
		});
		const etag = `${md5.digest('hex')}-${asked.length}`;
		const target = key_path(c.folder, c.key);
		if (c.does.lose) fs.rmSync(temporary);
		else {
			put_in_place(temporary, target);
			remember(c.world, target, etag);
		}
		fs.rmSync(dir, { recursive: true });
		c.reply_xml(200, 'CompleteMultipartUploadResult', `<Bucket>${c.volume.id}</Bucket><Key>${escape(c.key)}</Key><ETag>&quot;${etag}&quot;</ETag>`);
	},
};

function operation(method, bucket, key, query, headers) {
	if (SUBRESOURCES.some((name) => query.has(name))) return null;
	if (!bucket) return method === 'GET' ? 'ListBuckets' : null;
	if (!key) {
		if (method === 'HEAD') return 'HeadBucket';
		if (method === 'GET') return query.has('uploads') ? 'ListMultipartUploads' : 'ListObjectsV2';
		return null;
	}
	if (query.has('uploadId'))
		return { PUT: 'UploadPart', POST: 'CompleteMultipartUpload', DELETE: 'AbortMultipartUpload', GET: 'ListParts' }[method] || null;
	if (method === 'POST') return query.has('uploads') ? 'CreateMultipartUpload' : null;
	if (method === 'PUT') return headers['x-amz-copy-source'] ? 'CopyObject' : 'PutObject';
	return { GET: 'GetObject', HEAD: 'HeadObject', DELETE: 'DeleteObject' }[method] || null;
}

// Serves one request; match(op) gives what the faults want done. Gives back { op, status } for the log.
async function serve(req, res, world, match) {
	const mark = req.url.indexOf('?');
	const url = { raw_path: mark < 0 ? req.url : req.url.slice(0, mark), search: mark < 0 ? '' : req.url.slice(mark) };
	let op = null;
	const fail = (e) => {
		if (res.headersSent) return res.destroy();
		const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${e.code}</Code><Message>${escape(e.message)}</Message><Resource>${escape(url.raw_path)}</Resource></Error>`;
		res.writeHead(e.status, { 'Content-Type': 'application/xml', 'Content-Length': Buffer.byteLength(body), Connection: 'close' });
		res.end(req.method === 'HEAD' ? undefined : body);
	};
	try {
		const [, bucket, ...rest] = url.raw_path.split('/').map(decode);
		const key = rest.join('/');
		const query = new Map(query_pairs(url.search));
		op = operation(req.method, bucket, key, query, req.headers);
		const auth = check_signature(req, url, world);
		if (!op) throw new S3Error(501, 'NotImplemented', 'A header you provided implies functionality that is not implemented');
		const does = match(`s3:${op}`);
		if (does.s3) throw new S3Error(does.status, does.s3);
		if (does.reset) return void req.socket.destroy();
		if (does.extreme) {
			extremes.http(does.extreme, req.socket);
			return { op };
		}
		const volume = bucket ? world.volumes.get(bucket) : null;
		if (bucket && !volume) throw new S3Error(404, 'NoSuchBucket', 'The specified bucket does not exist');
		if (volume) check_region(auth, volume, world);
		const folder = volume && world.volumes.folder(bucket);
		const upload_dir = (id) => path.join(folder, UPLOADS, id);
		await ops[op]({
			req, res, world, volume, folder, key, query, does, upload_dir,
			upload() {
				const id = query.get('uploadId');
				if (!/^[a-z0-9]+$/.test(id) || !fs.existsSync(upload_dir(id)) || fs.readFileSync(path.join(upload_dir(id), 'key'), 'utf8') !== key)
					throw new S3Error(404, 'NoSuchUpload', 'The specified upload does not exist.');
				return upload_dir(id);
			},
			temporary() {
				fs.mkdirSync(path.join(folder, UPLOADS), { recursive: true });
				return path.join(folder, UPLOADS, `tmp-${world.random_id(12)}`);
			},
			reply(status, headers) {
				res.writeHead(status, status === 204 ? headers : { 'Content-Length': 0, ...headers });
				res.end();
			},
			reply_xml(status, name, inner) {
				const body = xml(name, inner);
				res.writeHead(status, { 'Content-Type': 'application/xml', 'Content-Length': Buffer.byteLength(body) });
				res.end(body);
			},
		});
	} catch (e) {
		fail(e instanceof S3Error ? e : new S3Error(500, 'InternalError', String(e && e.stack)));
	}
	return { op };
}

module.exports = { serve };
