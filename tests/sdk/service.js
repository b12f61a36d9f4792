// An application on the official SDK: config, analytics, feature flags, requests that are repeated.
'use strict';

const assert = require('node:assert/strict');
const { Parse, fails, main } = require('./runner');

const master = { useMasterKey: true };

async function seed() {
  const stored = await Parse.Config.get(master);
  const remove = Object.keys(stored.attributes).map((name) => [name, { __op: 'Delete' }]);
  const controller = Parse.CoreManager.getRESTController();
  await controller.request('PUT', 'config', { params: Object.fromEntries(remove) }, master);
  return {};
}

const checks = {
  async 'config that is saved is read with its types'() {
    assert.deepEqual((await Parse.Config.get()).attributes, {});
    const saved = await Parse.Config.save({
      welcome: 'hello',
      count: 3,
      on: false,
      list: [1, 'two', { three: 3 }],
      since: new Date('2020-01-02T03:04:05.678Z'),
      place: new Parse.GeoPoint(10, 20),
      leader: Parse.User.createWithoutData('abcdefghij'),
    });
    assert.equal(saved.get('welcome'), 'hello');
    const config = await Parse.Config.get();
    assert.equal(config.get('count'), 3);
    assert.equal(config.get('on'), false);
    assert.deepEqual(config.get('list'), [1, 'two', { three: 3 }]);
    assert.equal(+config.get('since'), Date.UTC(2020, 0, 2, 3, 4, 5, 678));
    assert.ok(config.get('place').equals(new Parse.GeoPoint(10, 20)));
    assert.ok(config.get('leader') instanceof Parse.User);
    assert.equal(config.escape('welcome'), 'hello');
    assert.equal(Parse.Config.current().get('count'), 3);
  },

  async 'config for the master key alone'() {
    await Parse.Config.save({ open: 1, secret: 2 }, { secret: true });
    assert.deepEqual((await Parse.Config.get()).attributes, { open: 1 });
    assert.deepEqual((await Parse.Config.get(master)).attributes, { open: 1, secret: 2 });
    await Parse.Config.save({ secret: 3 });
    assert.deepEqual((await Parse.Config.get()).attributes, { open: 1, secret: 3 });
  },

  async 'config that makes no sense'() {
    await fails(Parse.Config.save({ 'not a name': 1 }), Parse.Error.INVALID_KEY_NAME);
  },

  async 'events are tracked and counted'() {
    const name = `search${Date.now()}`;
    for (const source of ['web', 'web', 'mail']) {
      await Parse.Analytics.track(name, { source });
    }
    const controller = Parse.CoreManager.getRESTController();
    const asked = { dimension: 'source' };
    const { results } = await controller.request('GET', `events/${name}`, asked, master);
    assert.deepEqual(results.map(({ value, count }) => [value, count]), [['web', 2], ['mail', 1]]);
  },

  async 'server info'() {
    const controller = Parse.CoreManager.getRESTController();
    const info = await controller.request('GET', 'serverInfo', {}, master);
    assert.ok(info.features.globalConfig.update);
    assert.match(info.parseServerVersion, /^\d+\.\d+\.\d+$/);
  },

  async 'functions of feature flags'() {
    const user = await Parse.User.signUp('ann', 'correct horse');
    await Parse.User.logOut();
    const features = await Parse.Cloud.run('getFeatures', { clientVersion: '2.1.0' });
    assert.ok(features.includes('objects'));
    await fails(Parse.Cloud.run('getFeatures', { clientVersion: 'new' }), 141);
    const asked = { feature: 'carbonCredits', userId: user.id };
    assert.deepEqual(await Parse.Cloud.run('checkFeatureAccess', asked), { hasAccess: false });
  },

  async 'requests that the SDK gives an id'() {
    Parse.idempotency = true;
    try {
      const game = await new Parse.Object('Game').save({ score: 1 }, master);
      await game.save({ score: 2 }, master);
      game.increment('score');
      await game.save(null, master);
      assert.equal((await new Parse.Query('Game').get(game.id)).get('score'), 3);
      const many = [1, 2, 3].map((score) => new Parse.Object('Game', { score }));
      await Parse.Object.saveAll(many, master);
      assert.equal(await new Parse.Query('Game').count(), 4);
      await Parse.Object.destroyAll([...many, game], master);
      await Parse.User.signUp('bob', 'correct horse');
      await Parse.User.logOut();
      await Parse.User.logIn('bob', 'correct horse');
      await Parse.User.logOut();
      assert.equal(await new Parse.Query('Game').count(), 0);
    } finally {
      Parse.idempotency = false;
    }
  },

  async 'a request whose answer was lost is repeated by the SDK'() {
    const sent = [];
    const real = globalThis.fetch;
    Parse.idempotency = true;
    globalThis.fetch = async (url, options) => {
      sent.push(options.headers['X-Parse-Request-Id']);
      const answer = await real(url, options);
      // The first answer never arrives.
      if (sent.length === 1) return { status: 503, headers: new Headers(), text: async () => '' };
      return answer;
    };
    try {
      await new Parse.Object('Game').save({ score: 1 }, master);
    } finally {
      globalThis.fetch = real;
      Parse.idempotency = false;
    }
    assert.equal(sent.length, 2);
    assert.equal(sent[0], sent[1]);
    assert.equal(await new Parse.Query('Game').count(), 1);
  },
};

main(checks, seed);
