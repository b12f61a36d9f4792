'use strict';
// Results of one file: from the lines that its process has written to counts and tests.
const fs = require('fs');

function readLines(file) {
  if (!fs.existsSync(file)) {
    return [];
  }
  return fs.readFileSync(file, 'utf-8').split('\n').filter(Boolean).flatMap(line => {
    try {
      return [JSON.parse(line)];
    } catch {
      return [];
    }
  });
}

function summarise(job, lines, { code, killed, stderr }) {
  const result = { suite: job.suite, file: job.file, passed: 0, failed: 0, skipped: 0, tests: [] };
  const open = new Set();
  let ended = false;
  for (const line of lines) {
    switch (line.t) {
      case 'start':
        open.add(line.name);
        break;
      case 'test': {
        open.delete(line.name);
        result[line.status]++;
        const test = { name: line.name, status: line.status, ms: line.ms };
        if (line.reason) {
          test.reason = line.reason;
        }
        if (line.control) {
          test.control = true;
        }
        if (line.message) {
          test.message = line.message;
        }
        if (line.at) {
          test.at = line.at;
        }
        if (line.notes) {
          test.notes = line.notes;
        }
        result.tests.push(test);
        break;
      }
      case 'end':
        ended = true;
        break;
      default:
        (result.notes = result.notes || []).push(`${line.t}: ${line.name ? line.name + ': ' : ''}${line.message}`);
    }
  }
  for (const name of open) {
    result.failed++;
    result.tests.push({ name, status: 'failed', message: killed ? `killed: ${killed}` : `test process ended (${code})` });
  }
  if (!ended) {
    result.incomplete = killed || `test process ended with ${code}: ${stderr.trim().split('\n').slice(-3).join(' | ').slice(0, 300)}`;
  }
  return result;
}

module.exports = { readLines, summarise };
