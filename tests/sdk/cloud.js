// An application on the official SDK: server functions and triggers (tests/cloud.py).
'use strict';

const assert = require('node:assert/strict');
const { Parse, fails, main } = require('./runner');

const master = { useMasterKey: true };
const Note = Parse.Object.extend('CloudNote');

async function seed() {
  const note = await new Note({ text: 'first', hidden: false }).save(null, master);
  return { note };
}

const checks = {
  async 'a function and its result'() {
    assert.equal(await Parse.Cloud.run('cloudHello', {}), 'Hello world!');
    assert.equal(await Parse.Cloud.run('cloudHello', { name: 'Ann' }), 'Hello Ann!');
  },

  async 'typed parameters and results'({ note }) {
    const when = new Date('2020-01-30T00:00:00.000Z');
    const later = await Parse.Cloud.run('cloudLater', { when, days: 3 });
    assert.ok(later instanceof Date);
    assert.equal(+later, Date.UTC(2020, 1, 2));
    const found = await Parse.Cloud.run('cloudOwner', { of: note.toPointer() });
    assert.ok(found instanceof Note);
    assert.equal(found.id, note.id);
    assert.equal(found.get('text'), 'first');
  },

  async 'errors of functions'() {
    await fails(Parse.Cloud.run('cloudNobody', {}), Parse.Error.SCRIPT_FAILED);
    await fails(Parse.Cloud.run('cloudLater', {}), Parse.Error.SCRIPT_FAILED);
    await fails(Parse.Cloud.run('cloudFail', {}), Parse.Error.SCRIPT_FAILED);
    await fails(Parse.Cloud.run('cloudFail', { code: 1234 }), 1234);
    await fails(Parse.Cloud.run('cloudWho', {}), Parse.Error.VALIDATION_ERROR);
  },

  async 'a function knows the user'() {
    const name = `cloud-${Date.now()}`;
    const user = await Parse.User.signUp(name, 'correct horse');
    const sessionToken = user.getSessionToken();
    const me = await Parse.Cloud.run('cloudWho', {}, { sessionToken });
    assert.ok(me instanceof Parse.User);
    assert.equal(me.id, user.id);
    assert.equal(me.get('username'), name);
  },

  async 'the context of a call'() {
    const context = { from: 'sdk', n: 1 };
    assert.deepEqual(await Parse.Cloud.run('cloudContext', {}, { context }), context);
  },

  async 'a trigger changes what is saved'() {
    const note = await new Note({ text: 'four' }).save(null, { ...master, context: { from: 'x' } });
    assert.equal(note.get('size'), 4);
    assert.equal(note.get('from'), 'x');
    note.set('text', 'fourteen');
    await note.save(null, master);
    assert.equal(note.get('size'), 8);
    assert.equal((await new Parse.Query(Note).get(note.id)).get('size'), 8);
  },

  async 'a trigger refuses'() {
    await fails(new Note({ text: '' }).save(null, master), Parse.Error.SCRIPT_FAILED);
    const kept = await new Note({ text: 'kept', kept: true }).save(null, master);
    await fails(kept.destroy(), Parse.Error.SCRIPT_FAILED);
    await kept.destroy(master);
  },

  async 'several saves at once go through the trigger each'() {
    const notes = ['a', 'bb', 'ccc'].map((text) => new Note({ text }));
    await Parse.Object.saveAll(notes, master);
    assert.deepEqual(notes.map((note) => note.get('size')), [1, 2, 3]);
    const all = [new Note({ text: 'fine' }), new Note({ text: '' })];
    await assert.rejects(Parse.Object.saveAll(all, master));
  },

  async 'triggers around a search'() {
    const hidden = await new Note({ text: 'psst', hidden: true }).save(null, master);
    const found = await new Parse.Query(Note).equalTo('text', 'first').find();
    assert.ok(found.length >= 1);
    assert.equal(found[0].get('loud'), 'FIRST');
    assert.equal(await new Parse.Query(Note).equalTo('text', 'psst').count(), 0);
    await fails(new Parse.Query(Note).get(hidden.id), Parse.Error.OBJECT_NOT_FOUND);
    assert.equal((await new Parse.Query(Note).get(hidden.id, master)).get('loud'), 'PSST');
  },
};

main(checks, seed);
