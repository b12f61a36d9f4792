// Checks that run with each build of the SDK: for Node, for browsers and for React Native.
// In a browser it is a script of a page; elsewhere a module. Files, users and live queries are where the builds differ.
'use strict';

(function (world) {
  function same(actual, expected) {
    const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
    if (a !== b) throw new Error(`${a} is not ${b}`);
  }

  async function rejected(promise, code) {
    try {
      await promise;
    } catch (error) {
      same(error.code, code);
      return;
    }
    throw new Error(`no error ${code}`);
  }

  function event(subscription, name) {
    return new Promise((resolve, reject) => {
      setTimeout(() => reject(new Error(`no ${name} came`)), 30000);
      subscription.on(name, resolve);
    });
  }

  /** Run the checks; return a list of {name, error}. */
  world.runBuild = async function (Parse, { serverURL, liveQueryURL, applicationId, javascriptKey }) {
    Parse.initialize(applicationId, javascriptKey);
    Parse.serverURL = serverURL;
    Parse.liveQueryServerURL = liveQueryURL;
    const suffix = Math.random().toString(36).slice(2);
    const checks = {
      async 'an object with values of all types'() {
        const note = new Parse.Object('Note', {
          text: 'héllo ✓',
          stars: 3,
          ratio: 1.5,
          on: true,
          list: [1, 'two', { three: [3] }],
          box: { a: { b: 1 } },
          at: new Date('2020-01-02T03:04:05.678Z'),
          place: new Parse.GeoPoint(10, 20),
        });
        await note.save();
        const found = await new Parse.Query('Note').equalTo('objectId', note.id).first();
        same(found.get('text'), 'héllo ✓');
        same([found.get('stars'), found.get('ratio'), found.get('on')], [3, 1.5, true]);
        same([found.get('list'), found.get('box')], [[1, 'two', { three: [3] }], { a: { b: 1 } }]);
        same(found.get('at').getTime(), Date.UTC(2020, 0, 2, 3, 4, 5, 678));
        same(found.get('place').latitude, 10);
        found.increment('stars');
        found.addUnique('list', 'more');
        found.unset('on');
        await found.save();
        await note.fetch();
        same([note.get('stars'), note.get('list').length, note.has('on')], [4, 4, false]);
        await note.destroy();
        await rejected(note.fetch(), Parse.Error.OBJECT_NOT_FOUND);
      },

      async 'many objects, related ones, and queries'() {
        const game = new Parse.Object('Game', { name: suffix });
        const notes = [1, 2, 3].map((stars) => new Parse.Object('Note', { stars, game, tag: suffix }));
        await Parse.Object.saveAll(notes);
        const query = new Parse.Query('Note').equalTo('tag', suffix).greaterThan('stars', 1);
        same(await query.count(), 2);
        const found = await query.descending('stars').include('game').select('stars', 'game.name').find();
        same(found.map((note) => note.get('stars')), [3, 2]);
        same(found[0].get('game').get('name'), suffix);
        const relation = game.relation('notes');
        relation.add(notes);
        await game.save();
        same(await relation.query().count(), 3);
        await Parse.Object.destroyAll(notes);
        same(await query.count(), 0);
      },

      async 'a user signs up, is the current one, and logs out'() {
        const user = new Parse.User({ username: suffix, password: 'correct horse' });
        await user.signUp();
        same((await Parse.User.currentAsync()).id, user.id);
        const hidden = new Parse.Object('Note', { text: 'mine' });
        hidden.setACL(new Parse.ACL(user));
        await hidden.save();
        await Parse.User.logOut();
        same(await Parse.User.currentAsync(), null);
        await rejected(new Parse.Query('Note').get(hidden.id), Parse.Error.OBJECT_NOT_FOUND);
        await rejected(Parse.User.logIn(suffix, 'wrong'), Parse.Error.OBJECT_NOT_FOUND);
        await Parse.User.logIn(suffix, 'correct horse');
        same((await new Parse.Query('Note').get(hidden.id)).get('text'), 'mine');
        await Parse.User.become((await Parse.User.currentAsync()).getSessionToken());
      },

      async 'a file is uploaded, referred to and read'() {
        const file = new Parse.File('héllo'.normalize('NFD').replace(/[^a-z]/g, '') + ' a.txt', {
          base64: 'aGVsbG8=',
        }, 'text/plain');
        file.setMetadata({ by: 'me' });
        file.setTags({ kind: 'text' });
        await file.save();
        const note = await new Parse.Object('Note', { file, files: [file] }).save();
        const found = await new Parse.Query('Note').get(note.id);
        same([found.get('file').url(), found.get('files')[0].name()], [file.url(), file.name()]);
        const response = await fetch(file.url());
        same([response.status, await response.text()], [200, 'hello']);
        const described = await fetch(file.url().replace(file.name().replace(' ', '%20'), `metadata/${file.name()}`));
        same((await described.json()).metadata, { by: 'me' });
        if (typeof Blob !== 'undefined' && typeof document !== 'undefined') {
          const blob = new Parse.File('blob', new Blob(['hello'], { type: 'text/plain' }));
          await blob.save();
          same(/_blob\.txt$/.test(blob.name()), true);
        }
      },

      async 'a live query of a user'() {
        await Parse.User.logIn(suffix, 'correct horse');
        const subscription = await new Parse.Query('Note').equalTo('live', suffix).subscribe();
        const created = event(subscription, 'create');
        const updated = event(subscription, 'update');
        const note = new Parse.Object('Note', { live: suffix, stars: 1 });
        note.setACL(new Parse.ACL(await Parse.User.currentAsync()));
        await note.save();
        same((await created).id, note.id);
        await note.save({ stars: 2 });
        same((await updated).get('stars'), 2);
        await subscription.unsubscribe();
        await Parse.LiveQuery.close();
      },

      async 'objects are pinned in a local datastore'() {
        Parse.enableLocalDatastore();
        const note = await new Parse.Object('Note', { text: 'pinned', tag: suffix }).save();
        await note.pin();
        const query = new Parse.Query('Note').equalTo('tag', suffix).fromLocalDatastore();
        same((await query.first()).get('text'), 'pinned');
        await note.unPin();
        same((await query.find()).length, 0);
      },

      async 'objects are saved and removed eventually'() {
        const note = new Parse.Object('Note', { text: 'eventually', tag: suffix });
        await note.saveEventually();
        same(await new Parse.Query('Note').equalTo('text', 'eventually').equalTo('tag', suffix).count(), 1);
        await note.destroyEventually();
        same(await new Parse.Query('Note').equalTo('text', 'eventually').equalTo('tag', suffix).count(), 0);
      },

      async 'config, installation and health'() {
        await Parse.Config.get();
        same(typeof (await Parse._getInstallationId()), 'string');
        same(await Parse.getServerHealth(), { status: 'ok' });
      },
    };
    const outcomes = [];
    for (const [name, check] of Object.entries(checks)) {
      let error = null;
      try {
        await check();
      } catch (failure) {
        error = `${failure.stack || failure} (code ${failure.code})`;
      }
      outcomes.push({ name, error });
    }
    return outcomes;
  };
})(typeof module === 'object' ? module.exports : globalThis);
