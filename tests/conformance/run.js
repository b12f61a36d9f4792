#!/usr/bin/env node
'use strict';
// Runs Parse's published test suites against a server URL. See docs/conformance.md.
const { spawn, execFileSync } = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const { parseArgs } = require('util');
const proxy = require('./lib/proxy');
const { send } = require('./lib/http');
const { readLines, summarise } = require('./lib/summary');
const files = require('./files.json');

const { values: opt, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    url: { type: 'string' },
    app: { type: 'string', default: 'test' },
    master: { type: 'string', default: 'test' },
    js: { type: 'string', default: 'test' },
    rest: { type: 'string', default: 'rest' },
    maintenance: { type: 'string', default: 'testing' },
    'header-prefix': { type: 'string', default: 'X-Parse-' },
    'sdk-url': { type: 'string' },
    'sdk-app': { type: 'string' },
    'sdk-master': { type: 'string' },
    'sdk-inject-js': { type: 'string' },
    'graphql-url': { type: 'string' },
    'control-url': { type: 'string' },
    'sdk-control-url': { type: 'string' },
    'on-down': { type: 'string' },
    'hook-host': { type: 'string', default: '127.0.0.1' },
    db: { type: 'string', default: 'postgres' },
    suite: { type: 'string', default: 'all' },
    only: { type: 'string', multiple: true },
    filter: { type: 'string' },
    'all-files': { type: 'boolean', default: false },
    timeout: { type: 'string', default: '10000' },
    'file-limit': { type: 'string', default: '900' },
    modules: { type: 'string' },
    'spec-port': { type: 'string', default: '8378' },
    'sdk-port': { type: 'string', default: '1337' },
    ref: { type: 'string', default: 'HEAD' },
    out: { type: 'string', default: 'results.json' },
    keep: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

function die(message) {
  console.error(message);
  process.exit(2);
}
if (opt.help || !opt.url) {
  die(
    'usage: PARSE_SERVER_REPO=… PARSE_SDK_REPO=… run.js --url http://HOST:PORT/MOUNT [--app test] [--master test] [--js test]\n' +
      '  [--rest rest] [--maintenance testing] [--header-prefix X-Parse-] [--sdk-url URL --sdk-app APP --sdk-master KEY] [--graphql-url URL]\n' +
      '  [--suite spec|sdk|all] [--only FILE…] [--filter REGEXP] [--all-files] [--db postgres|mongo] [--timeout MS] [--file-limit S]\n' +
      '  [--modules NODE_MODULES] [--control-url URL] [--sdk-control-url URL] [--on-down COMMAND] [--hook-host HOST] [--out results.json]\n' +
      '  [--spec-port 8378] [--sdk-port 1337] [--keep] [--verbose]'
  );
}

const modules = path.resolve(opt.modules || process.env.CONFORMANCE_MODULES || path.join(__dirname, 'node_modules'));
if (!fs.existsSync(path.join(modules, 'jasmine-core'))) {
  die(`no jasmine-core in ${modules}: run npm install here, or give --modules`);
}
const only = [...(opt.only || []), ...positionals].flatMap(s => s.split(',')).filter(Boolean);
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'parse-conformance-'));
process.on('exit', () => {
  if (!opt.keep) {
    fs.rmSync(work, { recursive: true, force: true });
  }
});
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => process.exit(130));
}

function extract(repo, folder, into) {
  if (!repo) {
    die(`the repository for ${folder} is not given (PARSE_SERVER_REPO / PARSE_SDK_REPO)`);
  }
  fs.mkdirSync(into, { recursive: true });
  const tar = execFileSync('git', ['-C', repo, 'archive', opt.ref, ...folder], { maxBuffer: 1 << 28 });
  execFileSync('tar', ['-x', '-C', into], { input: tar });
  return execFileSync('git', ['-C', repo, 'rev-parse', opt.ref]).toString().trim();
}

const wanted = suite => opt.suite === 'all' || opt.suite === suite;
const sources = {};
const jobs = [];
fs.symlinkSync(modules, path.join(work, 'node_modules'));
if (wanted('spec') && (process.env.PARSE_SERVER_REPO || !only.length)) {
  const root = path.join(work, 'server');
  sources.spec = extract(process.env.PARSE_SERVER_REPO, ['spec', 'package.json', 'public_html', 'views'], root);
  fs.mkdirSync(path.join(root, 'lib'), { recursive: true });
  const dir = path.join(root, 'spec');
  const all = fs.readdirSync(dir).filter(f => f.endsWith('.spec.js'));
  const list = all.filter(f => opt['all-files'] || !(f in files.skip));
  for (const file of list.sort()) {
    jobs.push({ suite: 'spec', file, path: path.join(dir, file), root });
  }
}
if (wanted('sdk') && (process.env.PARSE_SDK_REPO || !only.length)) {
  const root = path.join(work, 'sdk');
  sources.sdk = extract(process.env.PARSE_SDK_REPO, ['integration'], root);
  const dir = path.join(root, 'integration', 'test');
  for (const file of fs.readdirSync(dir).filter(f => f.endsWith('Test.js')).sort()) {
    if (opt['all-files'] || !(file in files.skip)) {
      jobs.push({ suite: 'sdk', file, path: path.join(dir, file), root, cloudMain: path.join(dir, 'cloud', 'main.js') });
    }
  }
}
const chosen = only.length
  ? jobs.filter(j => only.some(o => j.file === o || j.file.replace(/\.spec\.js$|\.js$/, '') === o.replace(/\.spec\.js$|\.js$/, '')))
  : jobs;
if (!chosen.length) {
  die('no file chosen');
}

const specTarget = { url: opt.url, app: opt.app, master: opt.master, js: opt.js, rest: opt.rest, maintenance: opt.maintenance, headerPrefix: opt['header-prefix'] };
const sdkTarget = {
  ...specTarget,
  url: opt['sdk-url'] || opt.url,
  app: opt['sdk-app'] || opt.app,
  master: opt['sdk-master'] || opt.master,
};

async function alive(target, tries = 5) {
  for (let i = 0; i < tries; i++) {
    try {
      await send({
        url: `${target.url.replace(/\/$/, '')}/health`,
        headers: { [`${target.headerPrefix}Application-Id`]: target.app },
        timeout: 5000,
      });
      return true;
    } catch {
      await new Promise(resolve => setTimeout(resolve, 1000));
    }
  }
  return false;
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = require('net').createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

let child;
async function runFile(job) {
  // a port that the GraphQL specs listen on themselves; it may be taken here
  const graphqlPort = await freePort();
  return new Promise(resolve => {
    const resultsFile = path.join(work, `${job.suite}-${job.file}.jsonl`);
    const target = job.suite === 'spec' ? specTarget : sdkTarget;
    const conf = {
      ...job,
      target,
      resultsFile,
      timeout: Number(opt.timeout),
      db: opt.db,
      filter: opt.filter,
      hookHost: opt['hook-host'],
      graphqlUrl: opt['graphql-url'],
      controlUrl: job.suite === 'spec' ? opt['control-url'] : opt['sdk-control-url'],
      localUrl: job.suite === 'spec' ? `http://localhost:${opt['spec-port']}/1` : `http://localhost:${opt['sdk-port']}/parse`,
      replacements: [['13377', String(graphqlPort)]],
    };
    if (job.suite === 'spec' && opt['spec-port'] !== '8378') {
      conf.replacements.push(['localhost:8378', `localhost:${opt['spec-port']}`]);
    }
    if (job.suite === 'sdk') {
      if (opt['sdk-port'] !== '1337') {
        conf.replacements.push(['localhost:1337', `localhost:${opt['sdk-port']}`]);
      }
    }
    let stderr = '';
    let killed = null;
    child = spawn(process.execPath, [path.join(__dirname, 'lib', 'child.js')], {
      env: { ...process.env, CONF_JOB: JSON.stringify(conf), NODE_PATH: modules, NODE_NO_WARNINGS: '1' },
      stdio: ['ignore', opt.verbose ? 'inherit' : 'ignore', 'pipe'],
    });
    child.stderr.on('data', d => {
      stderr = (stderr + d).slice(-2000);
      if (opt.verbose) {
        process.stderr.write(d);
      }
    });
    const limit = setTimeout(() => {
      killed = `file limit of ${opt['file-limit']} s`;
      child.kill('SIGKILL');
    }, Number(opt['file-limit']) * 1000);
    child.on('close', code => {
      clearTimeout(limit);
      child = null;
      resolve(summarise(job, readLines(resultsFile), { code, killed, stderr }));
    });
  });
}
process.on('exit', () => child && child.kill('SIGKILL'));

const key = r => `${r.suite}/${r.file}`;
const pad = (s, n) => String(s).padEnd(n);
const lpad = (s, n) => String(s).padStart(n);

(async () => {
  const proxies = [];
  if (chosen.some(j => j.suite === 'spec')) {
    proxies.push(
      await proxy.start({
        port: Number(opt['spec-port']), mount: '/1', target: specTarget.url, headerPrefix: opt['header-prefix'],
        keys: { app: ['test', specTarget.app], master: ['test', specTarget.master], js: ['test', specTarget.js], rest: ['rest', specTarget.rest] },
      })
    );
  }
  if (chosen.some(j => j.suite === 'sdk')) {
    proxies.push(
      await proxy.start({
        port: Number(opt['sdk-port']), mount: '/parse', target: sdkTarget.url, headerPrefix: opt['header-prefix'],
        keys: { app: ['integration', sdkTarget.app], master: ['notsosecret', sdkTarget.master] },
        injectJs: opt['sdk-inject-js'],
      })
    );
  }
  const report = { url: opt.url, started: new Date().toISOString(), db: opt.db, sources, files: [] };
  console.log(`${pad('file', 44)} ${lpad('pass', 6)} ${lpad('fail', 6)} ${lpad('skip', 6)} ${lpad('s', 6)}`);
  for (const job of chosen) {
    const began = Date.now();
    const target = job.suite === 'spec' ? specTarget : sdkTarget;
    let result;
    let up = await alive(target);
    if (!up && opt['on-down']) {
      try {
        execFileSync('/bin/sh', ['-c', opt['on-down']], { stdio: 'ignore', timeout: 60000 });
      } catch {
        // the next line finds out
      }
      up = await alive(target, 20);
    }
    if (up) {
      result = await runFile(job);
    } else {
      result = { suite: job.suite, file: job.file, passed: 0, failed: 0, skipped: 0, tests: [], incomplete: 'server does not answer' };
    }
    result.seconds = Math.round((Date.now() - began) / 1000);
    for (const p of proxies) {
      p.dropConnections();
    }
    report.files.push(result);
    console.log(
      `${pad(key(result), 44)} ${lpad(result.passed, 6)} ${lpad(result.failed, 6)} ${lpad(result.skipped, 6)} ${lpad(result.seconds, 6)}${result.incomplete ? `  INCOMPLETE (${result.incomplete})` : ''}`
    );
    fs.writeFileSync(opt.out, JSON.stringify(report, null, 1));
  }
  for (const p of proxies) {
    p.close();
  }
  const total = { passed: 0, failed: 0, skipped: 0, skippedBy: {} };
  for (const r of report.files) {
    total.passed += r.passed;
    total.failed += r.failed;
    total.skipped += r.skipped;
    for (const t of r.tests) {
      if (t.status === 'skipped') {
        total.skippedBy[t.reason.kind] = (total.skippedBy[t.reason.kind] || 0) + 1;
      }
    }
  }
  report.finished = new Date().toISOString();
  report.total = total;
  console.log(`${pad('TOTAL', 44)} ${lpad(total.passed, 6)} ${lpad(total.failed, 6)} ${lpad(total.skipped, 6)}`);
  console.log(`skipped: ${Object.entries(total.skippedBy).map(([k, n]) => `${k} ${n}`).join(', ') || 'none'}`);
  fs.writeFileSync(opt.out, JSON.stringify(report, null, 1));
  process.exit(0);
})().catch(e => {
  console.error(e);
  process.exit(1);
});
