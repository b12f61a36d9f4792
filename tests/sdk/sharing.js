// An application on the official SDK: what is whose, by access lists, roles, relations; files.
'use strict';

const assert = require('node:assert/strict');
const { Parse, fails, main, serverURL } = require('./runner');
const { Note, as, makeRole, master, note, seed, texts } = require('./accounts');

const checks = {
  async 'a private object is unseen by others'({ ann, bob }) {
    const made = await note('mine', ann, new Parse.ACL(ann));
    assert.deepEqual(texts(await new Parse.Query(Note).find(as(ann))), ['mine']);
    for (const other of [as(bob), undefined]) {
      assert.deepEqual(await new Parse.Query(Note).find(other), []);
      assert.equal(await new Parse.Query(Note).count(other), 0);
      await fails(new Parse.Query(Note).get(made.id, other), Parse.Error.OBJECT_NOT_FOUND);
      const blind = Note.createWithoutData(made.id);
      await fails(blind.save({ text: 'x' }, other), Parse.Error.OBJECT_NOT_FOUND);
      await fails(blind.destroy(other), Parse.Error.OBJECT_NOT_FOUND);
    }
    await made.destroy(as(ann));
  },

  async 'an access list gives reading to all and writing to one'({ ann, bob }) {
    const acl = new Parse.ACL(ann);
    acl.setPublicReadAccess(true);
    const made = await note('open', ann, acl);
    const seen = await new Parse.Query(Note).get(made.id, as(bob));
    assert.ok(seen.getACL().equals(acl));
    await fails(seen.save({ text: 'x' }, as(bob)), Parse.Error.OBJECT_NOT_FOUND);
    acl.setWriteAccess(bob, true);
    await made.save({ ACL: acl }, as(ann));
    await seen.save({ text: 'changed' }, as(bob));
    assert.equal((await made.fetch()).get('text'), 'changed');
  },

  async 'a class may give new objects to the user who makes them'({ ann, bob }) {
    const schema = new Parse.Schema('Note');
    const { classLevelPermissions } = await schema.get();
    const owner = { currentUser: { read: true, write: true } };
    schema.setCLP({ ...classLevelPermissions, ACL: owner });
    await schema.update();
    await Parse.User.become(ann.getSessionToken());
    const made = await new Note({ text: 'mine' }).save();
    assert.ok((await made.fetch()).getACL().equals(new Parse.ACL(ann)));
    assert.equal(await new Parse.Query(Note).count(as(bob)), 0);
  },

  async 'a role gives its members what its name may'({ ann, bob }) {
    const editors = await makeRole('Editors', { users: [ann] });
    const acl = new Parse.ACL();
    acl.setRoleReadAccess('Editors', true);
    acl.setRoleWriteAccess(editors, true);
    const made = await note('for editors', null, acl);
    assert.equal(await new Parse.Query(Note).count(as(bob)), 0);
    await Note.createWithoutData(made.id).save({ text: 'edited' }, as(ann));
    editors.getUsers().add(bob);
    await editors.save(null, master);
    assert.deepEqual(texts(await new Parse.Query(Note).find(as(bob))), ['edited']);
    const members = await editors.getUsers().query().ascending('username').find();
    assert.equal(members.length, 0);
    const seen = await editors.getUsers().query().ascending('username').find(master);
    assert.deepEqual(seen.map((user) => user.getUsername()), ['ann', 'bob']);
    editors.getUsers().remove(bob);
    await editors.save(null, master);
    assert.equal(await new Parse.Query(Note).count(as(bob)), 0);
    await fails(editors.save({ other: 1 }, as(ann)), Parse.Error.OBJECT_NOT_FOUND);
  },

  async 'a role holds what the roles that it is in hold'({ ann, bob }) {
    const owners = await makeRole('Owners', { users: [ann] });
    const editors = await makeRole('Editors', { users: [bob], roles: [owners] });
    await makeRole('Readers', { roles: [editors] });
    const acl = new Parse.ACL();
    acl.setRoleReadAccess('Readers', true);
    acl.setRoleWriteAccess('Owners', true);
    const made = await note('deep', null, acl);
    for (const user of [ann, bob]) {
      assert.deepEqual(texts(await new Parse.Query(Note).find(as(user))), ['deep']);
    }
    await fails(made.save({ text: 'x' }, as(bob)), Parse.Error.OBJECT_NOT_FOUND);
    await made.save({ text: 'y' }, as(ann));
    const holding = await new Parse.Query(Parse.Role).equalTo('users', ann).find(as(ann));
    assert.deepEqual(holding.map((role) => role.getName()), ['Owners']);
  },

  async 'a role has a name of its own that stays'({ ann }) {
    await makeRole('Editors', {});
    await fails(makeRole('Editors', {}), Parse.Error.DUPLICATE_VALUE);
    const role = await new Parse.Query(Parse.Role).equalTo('name', 'Editors').first();
    assert.throws(() => role.set('name', 'Others'));
    assert.throws(() => new Parse.Role('no/slash', new Parse.ACL()));
    const mine = () => new Parse.Role('Mine', new Parse.ACL(ann)).save(null, as(ann));
    await fails(mine(), Parse.Error.OPERATION_FORBIDDEN);
  },

  async 'users make roles where the class lets them'({ ann }) {
    const schema = new Parse.Schema('_Role');
    const before = (await schema.get()).classLevelPermissions;
    const all = { '*': true };
    const users = { requiresAuthentication: true };
    schema.setCLP({ find: all, get: all, count: all, create: users, update: users, delete: users });
    await schema.update();
    try {
      const own = await new Parse.Role('Mine', new Parse.ACL(ann)).save(null, as(ann));
      own.getUsers().add(ann);
      await own.save(null, as(ann));
      assert.equal(await new Parse.Query(Parse.Role).count(), 0);
      await fails(makeRole('Mine', {}), Parse.Error.DUPLICATE_VALUE);
      await own.destroy(as(ann));
    } finally {
      schema.setCLP(before);
      await schema.update();
    }
  },

  async 'relations are followed both ways'({ ann, bob }) {
    const made = await note('shared', ann);
    made.relation('readers').add([ann, bob]);
    await made.save(null, as(ann));
    const readers = made.relation('readers');
    const names = async (query, options) =>
      (await query.ascending('username').find(options)).map((user) => user.getUsername());
    assert.deepEqual(await names(readers.query(), master), ['ann', 'bob']);
    assert.deepEqual(await names(readers.query(), as(ann)), ['ann']);
    const read = () => new Parse.Query(Note).equalTo('readers', bob).find(as(bob));
    assert.deepEqual(texts(await read()), ['shared']);
    made.relation('readers').remove(bob);
    await made.save(null, as(ann));
    assert.deepEqual(await read(), []);
    assert.deepEqual(await names(readers.query(), master), ['ann']);
  },

  async 'queries ask as the user, and pointers to users are included'({ ann, bob }) {
    await Parse.User.become(ann.getSessionToken());
    const open = new Parse.ACL(ann);
    open.setPublicReadAccess(true);
    await new Note({ text: 'ann s', author: ann, ACL: open }).save();
    await new Note({ text: 'bob s', author: bob, ACL: new Parse.ACL(bob) }).save(null, as(bob));
    const mine = () => new Parse.Query(Note).equalTo('author', Parse.User.current());
    assert.deepEqual(texts(await mine().find()), ['ann s']);
    const included = await mine().include('author').first();
    assert.equal(included.get('author').get('username'), 'ann');
    await Parse.User.become(bob.getSessionToken());
    assert.deepEqual(texts(await mine().find()), ['bob s']);
    const anns = await new Parse.Query(Note).include('author').equalTo('author', ann).first();
    assert.equal(anns.get('author')?.get('email'), undefined);
    const users = new Parse.Query(Parse.User).equalTo('username', 'bob');
    const found = await new Parse.Query(Note).matchesQuery('author', users).find();
    assert.deepEqual(texts(found), ['bob s']);
  },

  async 'many objects at once are written as the user'({ ann, bob }) {
    const acl = new Parse.ACL(ann);
    const made = Array.from({ length: 25 }, (_, n) => new Note({ text: `n${n}`, ACL: acl }));
    await Parse.Object.saveAll(made, as(ann));
    assert.equal(await new Parse.Query(Note).count(as(ann)), 25);
    assert.equal(await new Parse.Query(Note).count(as(bob)), 0);
    made.forEach((one) => one.set('text', 'changed'));
    await assert.rejects(Parse.Object.saveAll(made, as(bob)));
    await fails(Parse.Object.fetchAll(made, as(bob)), Parse.Error.OBJECT_NOT_FOUND);
    const one = Parse.User.createWithoutData(ann.id).set('colour', 'red');
    await Parse.Object.saveAll([made[0], one], as(ann));
    assert.equal((await ann.fetch(as(ann))).get('colour'), 'red');
    await Parse.Object.destroyAll(made, as(ann));
    assert.equal(await new Parse.Query(Note).count(master), 0);
  },

  async 'users save files and objects that have them'({ ann }) {
    const bytes = Buffer.from('a picture of words');
    const base64 = bytes.toString('base64');
    const words = () => new Parse.File('words.txt', { base64 }, 'text/plain');
    await fails(words().save(), Parse.Error.FILE_SAVE_ERROR);
    const file = words();
    await file.save(as(ann));
    assert.match(file.name(), /^[0-9a-f]{32}_words\.txt$/);
    assert.ok(file.url().startsWith(serverURL));
    const answer = await fetch(file.url());
    assert.equal(await answer.text(), String(bytes));
    const made = await new Note({ text: 'with a file', picture: file }).save(null, as(ann));
    const again = await new Parse.Query(Note).get(made.id);
    assert.equal(again.get('picture').url(), file.url());
    assert.equal(await again.get('picture').getData(), bytes.toString('base64'));
    await file.destroy(master);
    assert.equal((await fetch(file.url())).status, 404);
  },

  async 'the master key puts files into directories'({ ann }) {
    const file = () => {
      const made = new Parse.File('a b.txt', { base64: 'aGVsbG8=' }, 'text/plain');
      made.setDirectory('reports/2026');
      return made;
    };
    await fails(file().save(as(ann)), Parse.Error.OPERATION_FORBIDDEN);
    const stored = file();
    await stored.save(master);
    assert.match(stored.name(), /^reports\/2026\/[0-9a-f]{32}_a b\.txt$/);
    const made = await new Note({ text: 'with a file', picture: stored }).save(null, as(ann));
    const picture = (await new Parse.Query(Note).get(made.id)).get('picture');
    assert.equal(await (await fetch(picture.url())).text(), 'hello');
    await picture.destroy(master);
    assert.equal((await fetch(stored.url())).status, 404);
  },

  async 'bytes are uploaded as a stream'({ ann }) {
    const bytes = Buffer.alloc(300_000, 'x');
    const file = new Parse.File('many.bin', bytes, 'application/octet-stream');
    await file.save(as(ann));
    const answer = await fetch(file.url());
    assert.deepEqual(Buffer.from(await answer.arrayBuffer()), bytes);
    const deeper = new Parse.File('many.bin', bytes, 'application/octet-stream');
    deeper.setDirectory('a/b');
    await deeper.save(master);
    assert.match(deeper.name(), /^a\/b\/[0-9a-f]{32}_many\.bin$/);
  },
};

main(checks, seed);
