// An application on the official SDK whose server code is webhooks; it answers them itself.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const http = require('node:http');
const { Parse, fails, main } = require('./runner');

const master = { useMasterKey: true };
const Note = Parse.Object.extend('HookNote');
const answers = {};
const told = [];

const server = http.createServer(async (request, response) => {
  let text = '';
  for await (const piece of request) text += piece;
  const body = JSON.parse(text);
  told.push(body);
  const answer = await answers[request.url](body);
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify(answer));
});

/** Answer webhooks at the path; its address. */
function on(path, answer) {
  answers[path] = answer;
  return `http://127.0.0.1:${server.address().port}${path}`;
}

async function seed() {
  if (!server.listening) {
    server.listen(0, '127.0.0.1');
    server.unref();
    await once(server, 'listening');
  }
  for (const { functionName } of await Parse.Hooks.getFunctions()) {
    await Parse.Hooks.removeFunction(functionName);
  }
  for (const { className, triggerName } of await Parse.Hooks.getTriggers()) {
    await Parse.Hooks.removeTrigger(className, triggerName);
  }
  told.length = 0;
}

const checks = {
  async 'declaring functions'() {
    const created = await Parse.Hooks.createFunction('hookHello', 'https://example.org/one');
    assert.deepEqual(created, { functionName: 'hookHello', url: 'https://example.org/one' });
    await Parse.Hooks.updateFunction('hookHello', 'https://example.org/two');
    assert.equal((await Parse.Hooks.getFunction('hookHello')).url, 'https://example.org/two');
    assert.equal((await Parse.Hooks.getFunctions()).length, 1);
    await assert.rejects(Parse.Hooks.createFunction('hookHello', 'https://example.org/'), {
      code: 143,
      message: 'function name: hookHello already exists',
    });
    await Parse.Hooks.removeFunction('hookHello');
    await assert.rejects(Parse.Hooks.getFunction('hookHello'), {
      code: 143,
      message: 'no function named: hookHello is defined',
    });
  },

  async 'declaring triggers'() {
    await Parse.Hooks.createTrigger('HookNote', 'beforeDelete', 'https://example.org/one');
    await Parse.Hooks.updateTrigger('HookNote', 'beforeDelete', 'https://example.org/two');
    assert.deepEqual(await Parse.Hooks.getTrigger('HookNote', 'beforeDelete'), {
      className: 'HookNote',
      triggerName: 'beforeDelete',
      url: 'https://example.org/two',
    });
    await assert.rejects(
      Parse.Hooks.createTrigger('HookNote', 'beforeDelete', 'https://example.org/'),
      { code: 143, message: 'class HookNote already has trigger beforeDelete' }
    );
    await Parse.Hooks.removeTrigger('HookNote', 'beforeDelete');
    await fails(Parse.Hooks.getTrigger('HookNote', 'beforeDelete'), 143);
  },

  async 'a function that is a webhook'() {
    const url = on('/later', ({ params }) => {
      const when = new Date(params.when.iso);
      when.setUTCDate(when.getUTCDate() + params.days);
      return { success: { __type: 'Date', iso: when.toISOString() } };
    });
    await Parse.Hooks.createFunction('hookLater', url);
    const when = new Date('2020-01-30T00:00:00.000Z');
    const later = await Parse.Cloud.run('hookLater', { when, days: 3 });
    assert.ok(later instanceof Date);
    assert.equal(+later, Date.UTC(2020, 1, 2));
    assert.equal(told[0].functionName, 'hookLater');
    assert.equal(told[0].master, false);
  },

  async 'errors of webhooks'() {
    const url = on('/fail', ({ params }) => ({ error: params.error }));
    await Parse.Hooks.createFunction('hookFail', url);
    await assert.rejects(Parse.Cloud.run('hookFail', { error: 'no' }), { code: 141, message: 'no' });
    const error = { code: 1337, error: 'not that' };
    await assert.rejects(Parse.Cloud.run('hookFail', { error }), { code: 1337, message: 'not that' });
    await Parse.Hooks.removeFunction('hookFail');
    await fails(Parse.Cloud.run('hookFail', {}), 141);
  },

  async 'a webhook changes what is saved'() {
    const url = on('/save', ({ object }) => {
      const note = Parse.Object.fromJSON(object);
      note.set('hello', 'world');
      return { success: note };
    });
    await Parse.Hooks.createTrigger('HookNote', 'beforeSave', url);
    const note = await new Note({ text: 'first' }).save(null, master);
    assert.equal(note.get('hello'), 'world');
    await note.save({ text: 'second' }, master);
    const found = await new Parse.Query(Note).get(note.id, master);
    assert.deepEqual([found.get('text'), found.get('hello')], ['second', 'world']);
    assert.equal(told[1].original.text, 'first');
  },

  async 'a webhook refuses'() {
    const url = on('/refuse', () => ({ error: 'not you' }));
    await Parse.Hooks.createTrigger('HookNote', 'beforeSave', url);
    await assert.rejects(new Note().save(null, master), { code: 141, message: 'not you' });
  },
};

main(checks, seed);
