// An application on the official SDK: objects, queries, schemas.
'use strict';

const assert = require('node:assert/strict');
const { Parse, fails, main, masterKey } = require('./runner');

const master = { useMasterKey: true };
const Game = Parse.Object.extend('Game');
const Player = Parse.Object.extend('Player');
const names = (objects) => objects.map((object) => object.get('name'));

async function seed() {
  const players = ['Ann', 'Bob'].map((name) => new Player({ name }));
  await Parse.Object.saveAll(players, master);
  const games = [
    { name: 'chess', score: 1, tags: ['a', 'b'], place: new Parse.GeoPoint(10, 10) },
    { name: 'go', score: 2, tags: ['b'], place: new Parse.GeoPoint(10.5, 10) },
    { name: 'shogi', score: 3, tags: [], place: new Parse.GeoPoint(50, 50) },
    { name: 'tag', when: new Date('2020-01-02T03:04:05.678Z') },
  ].map((fields, index) => new Game({ ...fields, owner: players[index % 2] }));
  await Parse.Object.saveAll(games, master);
  return { players, games };
}

const checks = {
  async 'save and fetch'({ players }) {
    const game = new Game();
    game.set({
      name: 'new',
      score: 4.5,
      big: 2 ** 52,
      flag: true,
      nothing: null,
      when: new Date('2021-02-03T04:05:06.007Z'),
      place: new Parse.GeoPoint(1, 2),
      area: new Parse.Polygon([[0, 0], [0, 1], [1, 1], [0, 0]]),
      details: { deep: { list: [1, { a: 2 }] } },
      owner: players[0],
      file: Parse.File.fromJSON({ __type: 'File', name: 'a.txt', url: 'http://example.org/a.txt' }),
    });
    await game.save(null, master);
    assert.match(game.id, /^[A-Za-z0-9]{10}$/);
    assert.ok(game.createdAt instanceof Date);
    assert.equal(+game.createdAt, +game.updatedAt);
    const again = await new Game({ id: game.id }).fetch();
    for (const key of ['name', 'score', 'big', 'flag', 'nothing', 'details']) {
      assert.deepEqual(again.get(key), game.get(key), key);
    }
    assert.equal(+again.get('when'), +game.get('when'));
    assert.ok(again.get('place').equals(game.get('place')));
    assert.ok(again.get('area').equals(game.get('area')));
    assert.equal(again.get('owner').id, players[0].id);
    assert.equal(again.get('file').name(), 'a.txt');
  },

  async 'update keeps what is not named'({ games }) {
    const game = Game.createWithoutData(games[0].id);
    await game.save({ name: 'chess2' });
    const again = await new Parse.Query(Game).get(games[0].id);
    assert.equal(again.get('name'), 'chess2');
    assert.equal(again.get('score'), 1);
    assert.ok(again.updatedAt >= games[0].updatedAt);
  },

  async 'increment, add, addUnique, remove, unset'({ games }) {
    const game = games[0];
    game.increment('score', 5);
    game.add('tags', 'c');
    await game.save();
    assert.equal(game.get('score'), 6);
    assert.deepEqual(game.get('tags'), ['a', 'b', 'c']);
    game.addUnique('tags', 'a');
    game.decrement('score');
    await game.save();
    assert.deepEqual(game.get('tags'), ['a', 'b', 'c']);
    assert.equal(game.get('score'), 5);
    game.remove('tags', 'b');
    game.unset('name');
    await game.save();
    assert.deepEqual(game.get('tags'), ['a', 'c']);
    const again = await game.fetch();
    assert.equal(again.has('name'), false);
  },

  async 'nested fields'({ games }) {
    const game = games[1];
    await game.save({ details: { x: 1, y: { z: 2 } } }, master);
    game.set('details.y.z', 3);
    game.increment('details.x');
    await game.save();
    const again = await new Parse.Query(Game).get(game.id);
    assert.deepEqual(again.get('details'), { x: 2, y: { z: 3 } });
  },

  async 'constraints'({ players }) {
    const found = async (build) => {
      const query = new Parse.Query(Game).ascending('name');
      build(query);
      return names(await query.find());
    };
    assert.deepEqual(await found((q) => q.equalTo('score', 2)), ['go']);
    assert.deepEqual(await found((q) => q.notEqualTo('score', 2)), ['chess', 'shogi', 'tag']);
    assert.deepEqual(await found((q) => q.equalTo('tags', 'b')), ['chess', 'go']);
    assert.deepEqual(await found((q) => q.containedIn('score', [1, 3])), ['chess', 'shogi']);
    assert.deepEqual(await found((q) => q.notContainedIn('score', [1, 3])), ['go', 'tag']);
    assert.deepEqual(await found((q) => q.containsAll('tags', ['a', 'b'])), ['chess']);
    assert.deepEqual(await found((q) => q.containsAllStartingWith('tags', ['a'])), ['chess']);
    assert.deepEqual(await found((q) => q.containedBy('tags', ['b', 'c'])), ['go', 'shogi']);
    assert.deepEqual(await found((q) => q.greaterThan('score', 1).lessThan('score', 3)), ['go']);
    assert.deepEqual(await found((q) => q.exists('score')), ['chess', 'go', 'shogi']);
    assert.deepEqual(await found((q) => q.doesNotExist('score')), ['tag']);
    assert.deepEqual(await found((q) => q.startsWith('name', 'sh')), ['shogi']);
    assert.deepEqual(await found((q) => q.endsWith('name', 'o')), ['go']);
    assert.deepEqual(await found((q) => q.contains('name', 'e')), ['chess']);
    assert.deepEqual(await found((q) => q.matches('name', /^S/i)), ['shogi']);
    assert.deepEqual(
      await found((q) => q.greaterThan('when', new Date('2020-01-01T00:00:00Z'))), ['tag']);
    assert.deepEqual(await found((q) => q.equalTo('owner', players[0])), ['chess', 'shogi']);
    const anns = new Parse.Query(Player).equalTo('name', 'Ann');
    assert.deepEqual(await found((q) => q.matchesQuery('owner', anns)), ['chess', 'shogi']);
    assert.deepEqual(await found((q) => q.doesNotMatchQuery('owner', anns)), ['go', 'tag']);
    const keyed = new Parse.Query(Player).equalTo('name', 'nobody');
    assert.deepEqual(await found((q) => q.matchesKeyInQuery('name', 'name', keyed)), []);
    const fresh = new Date(Date.now() - 3600e3);
    assert.equal((await found((q) => q.greaterThan('createdAt', fresh))).length, 4);
    assert.equal((await found((q) => q.greaterThanOrEqualTo('score', 'text'))).length, 0);
  },

  async 'places'() {
    const here = new Parse.GeoPoint(10, 10);
    const near = () => new Parse.Query(Game);
    assert.deepEqual(names(await near().near('place', here).find()), ['chess', 'go', 'shogi']);
    assert.deepEqual(
      names(await near().withinKilometers('place', here, 100).find()), ['chess', 'go']);
    assert.deepEqual(names(await near().withinMiles('place', here, 10).find()), ['chess']);
    const box = [new Parse.GeoPoint(9, 9), new Parse.GeoPoint(11, 11)];
    assert.equal(await near().withinGeoBox('place', ...box).count(), 2);
    const around = [[49, 49], [49, 51], [51, 51], [51, 49]];
    assert.deepEqual(names(await near().withinPolygon('place', around).find()), ['shogi']);
  },

  async 'order, limit, skip, select, include, count'({ players }) {
    const down = new Parse.Query(Game).descending('score').limit(2);
    assert.deepEqual(names(await down.find()), ['shogi', 'go']);
    const up = new Parse.Query(Game).ascending('score').skip(1).limit(2);
    assert.deepEqual(names(await up.find()), ['chess', 'go']);
    const only = await new Parse.Query(Game).select('name').first();
    assert.equal(only.has('score'), false);
    const without = await new Parse.Query(Game).exclude('name').first();
    assert.equal(without.has('name'), false);
    const owned = await new Parse.Query(Game).include('owner').equalTo('name', 'chess').first();
    assert.equal(owned.get('owner').get('name'), 'Ann');
    assert.equal(owned.get('owner').id, players[0].id);
    const all = await new Parse.Query(Game).includeAll().equalTo('name', 'go').first();
    assert.equal(all.get('owner').get('name'), 'Bob');
    assert.equal(await new Parse.Query(Game).greaterThan('score', 1).count(), 2);
    const counted = await new Parse.Query(Game).withCount().limit(1).find();
    assert.equal(counted.count, 4);
    assert.equal(counted.results.length, 1);
    let seen = 0;
    await new Parse.Query(Game).each(() => { seen += 1; }, { batchSize: 2 });
    assert.equal(seen, 4);
  },

  async 'compound queries'() {
    const low = new Parse.Query(Game).equalTo('score', 1);
    const high = new Parse.Query(Game).equalTo('score', 3);
    const either = Parse.Query.or(low, high).ascending('name');
    assert.deepEqual(names(await either.find()), ['chess', 'shogi']);
    assert.deepEqual(names(await Parse.Query.and(low, high).find()), []);
    assert.deepEqual(names(await Parse.Query.nor(low, high).ascending('name').find()), ['go', 'tag']);
  },

  async 'relations'({ players, games }) {
    const game = games[0];
    const relation = game.relation('players');
    relation.add(players);
    await game.save(null, master);
    const again = await new Parse.Query(Game).get(game.id);
    const members = again.relation('players');
    assert.deepEqual(names(await members.query().ascending('name').find()), ['Ann', 'Bob']);
    assert.equal(await members.query().equalTo('name', 'Bob').count(), 1);
    members.remove(players[0]);
    await again.save();
    assert.deepEqual(names(await members.query().find()), ['Bob']);
    const owners = await new Parse.Query(Game).equalTo('players', players[1]).find();
    assert.deepEqual(owners.map((owner) => owner.id), [game.id]);
    // A relation that was never fetched asks by redirectClassNameForKey.
    const blind = Game.createWithoutData(game.id).relation('players');
    assert.deepEqual(names(await blind.query().find()), ['Bob']);
  },

  async 'distinct and aggregate'() {
    const distinct = await new Parse.Query(Game).distinct('tags');
    assert.deepEqual(distinct.sort(), ['a', 'b']);
    const totals = await new Parse.Query(Game).aggregate([
      { $match: { score: { $gt: 1 } } },
      { $group: { _id: null, total: { $sum: '$score' } } },
    ]);
    assert.equal(totals.length, 1);
    assert.equal(totals[0].total, 5);
  },

  async 'access lists'({ games }) {
    const game = games[0];
    const acl = new Parse.ACL();
    acl.setPublicReadAccess(true);
    acl.setRoleWriteAccess('Admins', true);
    game.setACL(acl);
    await game.save();
    const again = await new Parse.Query(Game).get(game.id);
    assert.ok(again.getACL().equals(acl));
    await fails(again.save({ score: 0 }), Parse.Error.OBJECT_NOT_FOUND);
    await fails(again.destroy(), Parse.Error.OBJECT_NOT_FOUND);
    await again.save({ score: 0 }, master);
    again.setACL(new Parse.ACL());
    await again.save(null, master);
    assert.equal(await new Parse.Query(Game).equalTo('objectId', game.id).count(), 0);
    await fails(new Parse.Query(Game).get(game.id), Parse.Error.OBJECT_NOT_FOUND);
  },

  async 'saveAll and destroyAll'() {
    const many = Array.from({ length: 45 }, (_, n) => new Game({ name: `n${n}`, score: n }));
    await Parse.Object.saveAll(many);
    assert.ok(many.every((game) => game.id));
    assert.equal(await new Parse.Query(Game).startsWith('name', 'n').count(), 45);
    const fetched = await Parse.Object.fetchAll(many.map((g) => Game.createWithoutData(g.id)));
    assert.equal(fetched[44].get('score'), 44);
    await Parse.Object.destroyAll(many);
    assert.equal(await new Parse.Query(Game).startsWith('name', 'n').count(), 0);
  },

  async 'saveAll and destroyAll in transactions'({ games }) {
    const good = new Game({ name: 'good', score: 1 });
    const bad = new Game({ name: 'bad', score: 'text' });
    const transaction = { transaction: true };
    await assert.rejects(Parse.Object.saveAll([good, bad], transaction), (errors) => {
      // The SDK gives the one error of the whole to each object.
      assert.deepEqual([errors].flat().map((error) => error.code), [111, 111]);
      return true;
    });
    assert.equal(await new Parse.Query(Game).equalTo('name', 'good').count(), 0);
    await Parse.Object.destroyAll(games, transaction);
    assert.equal(await new Parse.Query(Game).count(), 0);
  },

  async 'an object with unsaved children'() {
    const game = new Game({ name: 'parent', owner: new Player({ name: 'child' }) });
    await game.save();
    assert.ok(game.get('owner').id);
  },

  async 'schemas'() {
    const schema = new Parse.Schema('Thing');
    schema.addString('name', { required: true }).addNumber('score', { defaultValue: 3 });
    schema.addPointer('owner', 'Player').addIndex('by_name', { name: 1 });
    schema.setCLP({ find: { '*': true }, get: { '*': true }, create: { '*': true } });
    await schema.save();
    const shown = await new Parse.Schema('Thing').get();
    assert.equal(shown.fields.owner.targetClass, 'Player');
    assert.deepEqual(shown.indexes.by_name, { name: 1 });
    const Thing = Parse.Object.extend('Thing');
    await fails(new Thing().save(), Parse.Error.VALIDATION_ERROR);
    const thing = await new Thing({ name: 'x' }).save();
    assert.equal(thing.get('score'), 3);
    await fails(thing.save({ name: 'y' }), Parse.Error.OPERATION_FORBIDDEN);
    const change = new Parse.Schema('Thing');
    change.addArray('tags').deleteField('owner');
    await change.update();
    assert.equal((await new Parse.Schema('Thing').get()).fields.owner, undefined);
    assert.ok((await Parse.Schema.all()).some((one) => one.className === 'Thing'));
    await fails(new Parse.Schema('Thing').delete(), Parse.Error.INVALID_SCHEMA_OPERATION);
    await new Parse.Schema('Thing').purge();
    await new Parse.Schema('Thing').delete();
    await fails(new Parse.Schema('Thing').get(), Parse.Error.INVALID_CLASS_NAME);
  },

  async 'the health of the service'() {
    assert.equal((await Parse.getServerHealth()).status, 'ok');
  },

  async 'error codes'({ games }) {
    await fails(new Parse.Query(Game).get('missing000'), Parse.Error.OBJECT_NOT_FOUND);
    await fails(new Parse.Object('Unheard', { a: 1 }).save(), Parse.Error.OPERATION_FORBIDDEN);
    await fails(games[0].save({ score: 'text' }), Parse.Error.INCORRECT_TYPE);
    await fails(new Parse.Query(Game).matches('name', '(').find(), Parse.Error.INVALID_QUERY);
    await fails(new Parse.Query(Game).equalTo('a-b', 1).find(), Parse.Error.INVALID_KEY_NAME);
    Parse.masterKey = 'wrong';
    try {
      await fails(new Parse.Query(Game).find(master), 261);
    } finally {
      Parse.masterKey = masterKey;
    }
  },
};

main(checks, seed);
