// Parse Server in a cluster: `node peer.js` with the settings in PEER_*. Prints "ready" when every
// process listens. It stops when its parent goes away (its standard input ends) and on SIGTERM.
// With PEER_LIVE_CLASSES changes of these classes go through the Redis behind PEER_REDIS_SOCKET to
// the process that serves live queries, which is another one: `node peer.js sockets`.
'use strict';

const cluster = require('node:cluster');

const processes = Number(process.env.PEER_PROCESSES || 2);
const port = Number(process.env.PEER_PORT);

function primary() {
  let listening = 0;
  let stopping = false;
  cluster.on('listening', () => {
    listening += 1;
    if (listening === processes) console.log('ready');
  });
  cluster.on('exit', (worker, code) => {
    if (stopping) return;
    console.error(`a process of the peer ended with code ${code}`);
    process.exit(1);
  });
  const stop = () => {
    stopping = true;
    for (const worker of Object.values(cluster.workers)) worker.kill('SIGTERM');
    setTimeout(() => process.exit(0), 200);
  };
  process.on('SIGTERM', stop);
  process.stdin.on('end', stop).resume();
  // What the processes print is no line of ours.
  cluster.setupPrimary({ stdio: ['ignore', 2, 2, 'ipc'] });
  // One after the other: the first one makes the tables.
  const startNext = (started) => {
    if (started === processes) return;
    cluster.fork().once('listening', () => startNext(started + 1));
  };
  startNext(0);
}

function cloud(Parse) {
  Parse.Cloud.define('benchAdd', (request) => request.params.a + request.params.b, {
    fields: { a: { type: Number, required: true }, b: { type: Number, required: true } },
  });
  Parse.Cloud.beforeSave('BenchChecked', (request) => request.object.set('visits', 1));
}

function options() {
  const live = process.env.PEER_LIVE_CLASSES;
  const maxLimit = Number(process.env.PEER_MAX_LIMIT);
  return {
    databaseURI: process.env.PEER_DATABASE_URL,
    appId: process.env.PEER_APP_ID,
    restAPIKey: process.env.PEER_REST_API_KEY,
    masterKey: process.env.PEER_MASTER_KEY,
    serverURL: `http://127.0.0.1:${port}/parse`,
    allowClientClassCreation: false,
    enableAnonymousUsers: false,
    cloud,
    // Tells the processes of one another's new classes.
    databaseOptions: { enableSchemaHooks: true },
    logLevel: 'error',
    ...(maxLimit && { maxLimit }),
    ...(live && { liveQuery: { classNames: live.split(','), ...redis() } }),
  };
}

function redis() {
  // The address has a host for its form's sake; the path goes before it.
  const socket = { path: process.env.PEER_REDIS_SOCKET };
  return { redisURL: 'redis://localhost', redisOptions: { socket } };
}

async function worker() {
  const express = require('express');
  const { ParseServer } = require('parse-server');
  const server = new ParseServer(options());
  await server.start();
  const app = express();
  app.use('/parse', server.app);
  app.listen(port, '127.0.0.1');
}

async function sockets() {
  const http = require('node:http');
  const { ParseServer } = require('parse-server');
  // What it prints is no line of ours.
  process.stdout.write = process.stderr.write.bind(process.stderr);
  const given = options();
  await new ParseServer(given).start();
  const server = http.createServer();
  await new Promise((done) => server.listen(port, '127.0.0.1', 1024, done));
  const { appId, masterKey, serverURL } = given;
  await ParseServer.createLiveQueryServer(server, { appId, masterKey, serverURL, ...redis() }, given);
  process.on('SIGTERM', () => process.exit(0));
  process.stdin.on('end', () => process.exit(0)).resume();
  require('node:fs').writeSync(1, 'ready\n');
}

const failed = (error) => {
  console.error(error);
  process.exit(1);
};

if (process.argv[2] === 'sockets') {
  sockets().catch(failed);
} else if (cluster.isPrimary) {
  primary();
} else {
  worker().catch(failed);
}
