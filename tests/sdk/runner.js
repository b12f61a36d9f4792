// What the applications here share: the SDK, pointed at the service, and the way checks are run.
// Usage: node APPLICATION.js SERVER_URL APPLICATION_ID JAVASCRIPT_KEY MASTER_KEY
// Prints one line a check, as JSON: {"name", "error"}; "error" is null for one that passed.
'use strict';

const assert = require('node:assert/strict');
const Parse = require('parse/node');

const [serverURL, applicationId, javascriptKey, masterKey] = process.argv.slice(2);
Parse.initialize(applicationId, javascriptKey, masterKey);
Parse.serverURL = serverURL;

async function fails(promise, code) {
  await assert.rejects(promise, (error) => {
    assert.ok(error instanceof Parse.Error, String(error));
    assert.equal(error.code, code, error.message);
    return true;
  });
}

async function clear() {
  // The SDK takes an empty list of classes for an error of its own.
  const schemas = await Parse.Schema.all().catch((error) => {
    if (error.message === 'Schema not found.') return [];
    throw error;
  });
  for (const { className } of schemas.filter((schema) => !schema.className.startsWith('_'))) {
    await new Parse.Schema(className).purge();
    await new Parse.Schema(className).delete();
  }
  for (const className of ['_User', '_Session', '_Role', '_Installation']) {
    await new Parse.Schema(className).purge();
  }
}

/** Run each check in a world of its own, which `seed` makes. */
async function run(checks, seed) {
  for (const [name, check] of Object.entries(checks)) {
    let error = null;
    try {
      await clear();
      await check(await seed());
    } catch (failure) {
      error = failure.stack || String(failure);
      if (failure.code) error += ` (code ${failure.code})`;
    }
    console.log(JSON.stringify({ name, error }));
  }
  await clear();
}

function main(checks, seed) {
  return run(checks, seed).catch((error) => {
    console.error(error);
    process.exit(1);
  });
}

module.exports = { Parse, applicationId, fails, javascriptKey, main, masterKey, serverURL };
