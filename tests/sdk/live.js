// An application on the official SDK: live queries.
// Usage: as the others, and behind it the address of live queries; without it the SDK's own guess.
'use strict';

const assert = require('node:assert/strict');
const { Parse, applicationId, javascriptKey, main, masterKey } = require('./runner');

const address = process.argv[6];
if (address) Parse.liveQueryServerURL = address;

const master = { useMasterKey: true };
const PATIENCE = 20000;
let opened = [];

async function seed() {
  for (const client of opened) await client.close();
  opened = [];
  for (const className of ['Game', 'Note']) {
    const schema = new Parse.Schema(className);
    schema.addString('name').addNumber('score');
    await schema.save();
  }
  return {};
}

/** What a subscription says, in order: [event, object, original]. */
class Heard {
  constructor(subscription) {
    this.subscription = subscription;
    this.said = [];
    this.waiting = [];
    for (const event of ['create', 'update', 'enter', 'leave', 'delete', 'error', 'close']) {
      subscription.on(event, (object, original) => this.hear([event, object, original]));
    }
  }

  hear(what) {
    const wanted = this.waiting.shift();
    if (wanted) wanted(what);
    else this.said.push(what);
  }

  async next(event) {
    if (this.said.length) return this.check(event, this.said.shift());
    const what = await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no ${event} came`)), PATIENCE);
      this.waiting.push((said) => resolve(said, clearTimeout(timer)));
    });
    return this.check(event, what);
  }

  check(event, what) {
    assert.equal(what[0], event, String(what[1]));
    return what.slice(1);
  }
}

/** By the SDK's own connection, which has the master key, or by this client's. */
async function subscribe(query, sessionToken, client) {
  if (!client) return new Heard(await query.subscribe(sessionToken));
  const subscription = client.subscribe(query, sessionToken);
  await subscription.subscribePromise;
  return new Heard(subscription);
}

async function signUp(name) {
  return Parse.User.signUp(name, 'correct horse', {});
}

function own(user) {
  const acl = new Parse.ACL();
  acl.setReadAccess(user.id, true);
  return acl;
}

async function client(options) {
  const made = new Parse.LiveQueryClient({
    applicationId,
    serverURL: Parse.liveQueryServerURL || Parse.serverURL.replace('http', 'ws'),
    ...options,
  });
  opened.push(made);
  made.open();
  return made;
}

const checks = {
  async 'an object comes, changes, goes, returns and ends'() {
    const heard = await subscribe(new Parse.Query('Game').greaterThan('score', 5));
    const game = await new Parse.Object('Game').save({ score: 6, name: 'a' }, master);
    const [made] = await heard.next('create');
    assert.ok(made instanceof Parse.Object);
    assert.deepEqual([made.id, made.get('score'), made.get('name')], [game.id, 6, 'a']);
    assert.ok(made.createdAt instanceof Date);
    await game.save({ score: 7 }, master);
    let [now, was] = await heard.next('update');
    assert.deepEqual([now.get('score'), was.get('score')], [7, 6]);
    await game.save({ score: 1 }, master);
    [now, was] = await heard.next('leave');
    assert.deepEqual([now.get('score'), was.get('score')], [1, 7]);
    await game.save({ score: 9 }, master);
    [now, was] = await heard.next('enter');
    assert.deepEqual([now.get('score'), was.get('score')], [9, 1]);
    await game.destroy(master);
    [now] = await heard.next('delete');
    assert.equal(now.id, game.id);
    await heard.subscription.unsubscribe();
  },

  async 'values have their types'() {
    const heard = await subscribe(new Parse.Query('Game'));
    const file = new Parse.File('a.txt', { base64: 'aGVsbG8=' }, 'text/plain');
    await file.save(master);
    const note = await new Parse.Object('Note').save({ name: 'n' }, master);
    const when = new Date('2026-01-02T03:04:05.678Z');
    const fields = { when, file, note, place: new Parse.GeoPoint(10, 20), list: [1, { a: null }] };
    await new Parse.Object('Game').save(fields, master);
    const [made] = await heard.next('create');
    assert.equal(+made.get('when'), +when);
    assert.equal(made.get('file').url(), file.url());
    assert.equal(made.get('note').id, note.id);
    assert.ok(made.get('place').equals(fields.place));
    assert.deepEqual(made.get('list'), fields.list);
    await heard.subscription.unsubscribe();
  },

  async 'some fields, and changes of some fields'() {
    const query = new Parse.Query('Game').select('name').watch('name');
    const heard = await subscribe(query);
    const game = await new Parse.Object('Game').save({ score: 1, name: 'a' }, master);
    const [made] = await heard.next('create');
    assert.deepEqual([made.get('name'), made.has('score')], ['a', false]);
    await game.save({ score: 2 }, master);
    await game.save({ name: 'b' }, master);
    const [now] = await heard.next('update');
    assert.equal(now.get('name'), 'b');
    await heard.subscription.unsubscribe();
  },

  async 'after unsubscribing nothing comes'() {
    const first = await subscribe(new Parse.Query('Game'));
    const second = await subscribe(new Parse.Query('Game'));
    await first.subscription.unsubscribe();
    await new Parse.Object('Game').save({ score: 1 }, master);
    await second.next('create');
    assert.deepEqual(first.said.filter(([event]) => event !== 'close'), []);
    await second.subscription.unsubscribe();
  },

  async 'users are told of what they may read, until they log out'() {
    const ann = await signUp('ann');
    const token = ann.getSessionToken();
    const query = new Parse.Query('Note');
    const made = await client({ javascriptKey });
    const hers = await subscribe(query, token, made);
    await assert.rejects(subscribe(query, 'r:nobody', made), (error) => error.code === 209);
    const strangers = await subscribe(query, undefined, made);
    const note = new Parse.Object('Note', { name: 'hers' });
    note.setACL(own(ann));
    await note.save(null, master);
    let [seen] = await hers.next('create');
    assert.equal(seen.get('name'), 'hers');
    const open = await new Parse.Object('Note').save({ name: 'open' }, master);
    [seen] = await strangers.next('create');
    assert.equal(seen.id, open.id);
    await hers.next('create');
    const controller = Parse.CoreManager.getRESTController();
    await controller.request('POST', 'logout', {}, { sessionToken: token });
    const [message] = await hers.next('error');
    assert.match(message, /session/i);
    await new Parse.Object('Note').save({ name: 'later' }, master);
    await strangers.next('create');
    assert.deepEqual(hers.said, []);
  },

  async 'a connection of its own with the master key'() {
    const made = await client({ masterKey });
    const heard = await subscribe(new Parse.Query('Note'), undefined, made);
    const note = new Parse.Object('Note', { name: 'closed' });
    note.setACL(new Parse.ACL());
    await note.save(null, master);
    const [seen] = await heard.next('create');
    assert.equal(seen.get('name'), 'closed');
  },

  async 'a wrong key'() {
    const made = await client({ javascriptKey: 'wrong' });
    const refused = subscribe(new Parse.Query('Note'), undefined, made);
    await assert.rejects(refused, (error) => error.code === 4);
  },

  async 'what can not be asked'() {
    const made = await client({ javascriptKey });
    const inner = new Parse.Query('Game');
    const asked = new Parse.Query('Note').matchesQuery('game', inner);
    await assert.rejects(subscribe(asked, undefined, made), (error) => error.code === 102);
    await subscribe(new Parse.Query('Note'), undefined, made);
  },

  async 'what a subscription finds now'() {
    await new Parse.Object('Game').save({ score: 6 }, master);
    const subscription = await new Parse.Query('Game').greaterThan('score', 5).subscribe();
    const found = new Promise((resolve) => subscription.on('result', resolve));
    subscription.find();
    const [game] = await found;
    assert.deepEqual([game.className, game.get('score')], ['Game', 6]);
    await subscription.unsubscribe();
  },
};

// Its connections keep the process alive.
main(checks, seed).then(() => process.exit(0));
