// For autocannon, where wrk isn't installed: the same file of requests, the same line of JSON.
// node replay.js URL FILE CONNECTIONS SECONDS HEADERS-AS-JSON
'use strict';

const fs = require('node:fs');
const autocannon = require('autocannon');

const [url, file, connections, seconds, headers] = process.argv.slice(2);
const requests = fs.readFileSync(file, 'utf8').trimEnd().split('\n').map((line) => {
  const [method, path, body] = line.split('\t');
  return { method, path, body: body || undefined };
});

autocannon(
  {
    url,
    requests,
    connections: Number(connections),
    duration: Number(seconds),
    headers: JSON.parse(headers),
  },
  (error, result) => {
    if (error) throw error;
    console.log(JSON.stringify({
      requests: result.requests.total,
      seconds: result.duration,
      p50_ms: result.latency.p50,
      p99_ms: result.latency.p99,
      max_ms: result.latency.max,
      failed: result.non2xx + result.errors + result.timeouts,
    }));
  },
);
