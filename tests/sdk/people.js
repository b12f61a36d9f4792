// An application on the official SDK: users, sessions, installations.
'use strict';

const assert = require('node:assert/strict');
const { createHmac } = require('node:crypto');
const { Parse, fails, main } = require('./runner');
const { PASSWORD, as, master, seed } = require('./accounts');

/** What an authenticator shows, so many steps of 30 seconds from now. */
function oneTimePassword(secret, steps) {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const bits = [...secret].map((c) => letters.indexOf(c).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps));
  const digest = createHmac('sha1', key).update(counter).digest();
  const number = digest.readUInt32BE(digest[19] & 15) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, '0');
}

const checks = {
  async 'signing up gives a session and a current user'() {
    const user = new Parse.User();
    user.set({ username: 'carl', password: PASSWORD, email: 'carl@example.org', colour: 'red' });
    assert.equal(await user.signUp(), user);
    assert.match(user.getSessionToken(), /^r:[0-9a-f]{32}$/);
    assert.ok(user.isCurrent());
    assert.ok(user.authenticated());
    assert.equal(Parse.User.current().id, user.id);
    const again = await Parse.User.currentAsync();
    assert.equal(again.get('colour'), 'red');
    assert.equal((await user.fetch()).getEmail(), 'carl@example.org');
    await user.fetchWithInclude(['friend']);
    await Parse.Object.fetchAll([user]);
    assert.ok(user.getSessionToken());
    const own = new Parse.ACL(user);
    assert.ok(user.getACL().equals(own));
  },

  async 'a name and an address that are taken are refused'() {
    const user = new Parse.User({ username: 'ANN', password: PASSWORD });
    await fails(user.signUp(), Parse.Error.USERNAME_TAKEN);
    user.set({ username: 'carl', email: 'ann@example.org' });
    await fails(user.signUp(), Parse.Error.EMAIL_TAKEN);
    user.set('email', 'nowhere');
    await fails(user.signUp(), Parse.Error.INVALID_EMAIL_ADDRESS);
    await user.signUp({ email: 'carl@example.org' });
    assert.ok(user.getSessionToken());
  },

  async 'logging in, becoming somebody, logging out'({ ann, bob }) {
    const user = await Parse.User.logIn('ann', PASSWORD);
    assert.equal(Parse.User.current().id, ann.id);
    assert.equal(user.getEmail(), 'ann@example.org');
    const token = user.getSessionToken();
    await Parse.User.become(bob.getSessionToken());
    assert.equal(Parse.User.current().id, bob.id);
    await Parse.User.become(token);
    await Parse.User.logOut();
    assert.equal(Parse.User.current(), null);
    await fails(Parse.User.become(token), Parse.Error.INVALID_SESSION_TOKEN);
    await fails(Parse.User.me(token), Parse.Error.INVALID_SESSION_TOKEN);
    await fails(Parse.User.logIn('ann', 'wrong'), Parse.Error.OBJECT_NOT_FOUND);
    await fails(Parse.User.logIn('nobody', 'wrong'), Parse.Error.OBJECT_NOT_FOUND);
    const posted = await Parse.User.logIn('ann', PASSWORD, { usePost: false });
    assert.equal(posted.id, ann.id);
  },

  async 'a password is verified without a session'({ ann }) {
    const before = await new Parse.Query(Parse.Session).count(master);
    const answer = await Parse.User.verifyPassword('ann', PASSWORD);
    assert.equal(answer.objectId, ann.id);
    assert.equal(answer.sessionToken, undefined);
    await fails(Parse.User.verifyPassword('ann', 'wrong'), Parse.Error.OBJECT_NOT_FOUND);
    assert.equal(await new Parse.Query(Parse.Session).count(master), before);
  },

  async 'own fields are saved and seen again'({ ann }) {
    const user = await Parse.User.logIn('ann', PASSWORD);
    user.set({ colour: 'red', address: { town: 'Bonn' } });
    user.increment('visits');
    await user.save();
    assert.equal(user.get('visits'), 1);
    user.set('username', 'anna');
    await user.save();
    const again = await Parse.User.me(ann.getSessionToken());
    assert.deepEqual(
      ['username', 'colour', 'visits', 'address'].map((name) => again.get(name)),
      ['anna', 'red', 1, { town: 'Bonn' }]);
    user.set('emailVerified', true);
    await fails(user.save(), Parse.Error.OPERATION_FORBIDDEN);
  },

  async 'nobody changes or removes the account of another'({ ann, bob }) {
    const other = Parse.User.createWithoutData(ann.id);
    await fails(other.save({ colour: 'blue' }, as(bob)), Parse.Error.SESSION_MISSING);
    await fails(other.destroy(as(bob)), Parse.Error.SESSION_MISSING);
    await fails(other.save({ colour: 'blue' }), Parse.Error.SESSION_MISSING);
    await other.save({ colour: 'green' }, master);
    assert.equal((await ann.fetch(as(ann))).get('colour'), 'green');
  },

  async 'a new password takes up a new session and ends the others'({ ann }) {
    const user = await Parse.User.logIn('ann', PASSWORD);
    const before = user.getSessionToken();
    user.setPassword('battery staple');
    await user.save();
    const after = user.getSessionToken();
    assert.notEqual(after, before);
    assert.equal(Parse.User.current().getSessionToken(), after);
    await user.save({ colour: 'red' });
    for (const ended of [before, ann.getSessionToken()]) {
      await fails(Parse.User.me(ended), Parse.Error.INVALID_SESSION_TOKEN);
    }
    await fails(Parse.User.logIn('ann', PASSWORD), Parse.Error.OBJECT_NOT_FOUND);
    await Parse.User.logIn('ann', 'battery staple');
  },

  async 'the session of the current user'({ ann }) {
    const user = await Parse.User.logIn('ann', PASSWORD);
    const session = await Parse.Session.current();
    assert.equal(session.getSessionToken(), user.getSessionToken());
    assert.equal(session.get('user').id, ann.id);
    assert.deepEqual(session.get('createdWith'), { action: 'login', authProvider: 'password' });
    assert.ok(session.get('expiresAt') > new Date());
    assert.ok(session.get('installationId'));
    assert.ok(Parse.Session.isCurrentSessionRevocable());
    await session.save({ place: 'home' });
    await Parse.User.logOut();
    await fails(session.fetch(as(user)), Parse.Error.INVALID_SESSION_TOKEN);
  },

  async 'users list their own sessions and end them'({ ann, bob }) {
    const own = await new Parse.Query(Parse.Session).find(as(ann));
    assert.deepEqual(own.map((session) => session.get('user').id), [ann.id]);
    assert.equal(own[0].getSessionToken(), ann.getSessionToken());
    const others = await new Parse.Query(Parse.Session).equalTo('user', bob).first(master);
    await fails(others.destroy(as(ann)), Parse.Error.OBJECT_NOT_FOUND);
    await fails(new Parse.Query(Parse.Session).find(), Parse.Error.INVALID_SESSION_TOKEN);
    await own[0].destroy(as(ann));
    await fails(Parse.User.me(ann.getSessionToken()), Parse.Error.INVALID_SESSION_TOKEN);
    await Parse.User.me(bob.getSessionToken());
  },

  async 'a query of users tells nobody s address'({ ann, bob }) {
    const open = new Parse.ACL(ann);
    open.setPublicReadAccess(true);
    await ann.save({ ACL: open }, as(ann));
    const found = await new Parse.Query(Parse.User).ascending('username').find(as(bob));
    assert.deepEqual(found.map((user) => user.getUsername()), ['ann', 'bob']);
    assert.deepEqual(found.map((user) => user.getEmail()), [undefined, 'bob@example.org']);
    assert.ok(found.every((user) => !user.has('password') && !user.has('authData')));
    const asked = new Parse.Query(Parse.User).equalTo('email', 'ann@example.org');
    await fails(asked.find(as(bob)), Parse.Error.OPERATION_FORBIDDEN);
    assert.equal((await asked.first(master)).id, ann.id);
  },

  async 'a user removes their account, and its sessions end'({ ann }) {
    const user = await Parse.User.logIn('ann', PASSWORD);
    await user.destroy();
    assert.equal(Parse.User.current(), null);
    await fails(Parse.User.me(ann.getSessionToken()), Parse.Error.INVALID_SESSION_TOKEN);
    await fails(Parse.User.logIn('ann', PASSWORD), Parse.Error.OBJECT_NOT_FOUND);
    await new Parse.User({ username: 'ann', password: PASSWORD }).signUp();
  },

  async 'a second factor is set up and asked for'({ ann }) {
    const secret = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';
    const user = await Parse.User.become(ann.getSessionToken());
    user.set('authData', { mfa: { secret, token: oneTimePassword(secret, -1) } });
    await user.save();
    const recovery = user.get('authDataResponse').mfa.recovery.split(', ');
    assert.equal(recovery.length, 2);
    assert.deepEqual((await user.fetch()).get('authData'), { mfa: { status: 'enabled' } });
    await Parse.User.logOut();
    await fails(Parse.User.logIn('ann', PASSWORD), Parse.Error.OTHER_CAUSE);
    const logIn = (token) =>
      Parse.User.logInWithAdditionalAuth('ann', PASSWORD, { mfa: { token } });
    await fails(logIn('000000'), Parse.Error.SCRIPT_FAILED);
    const next = oneTimePassword(secret, 0);
    assert.equal((await logIn(next)).id, ann.id);
    await fails(logIn(next), Parse.Error.SCRIPT_FAILED);
    assert.equal((await logIn(recovery[0])).id, ann.id);
    await fails(logIn(recovery[0]), Parse.Error.SCRIPT_FAILED);
  },

  async 'fields of the account are removed and queried'({ ann, bob }) {
    const user = await Parse.User.become(ann.getSessionToken());
    user.unset('email');
    await user.save({ friend: Parse.User.createWithoutData(bob.id), tags: ['a'] });
    assert.equal((await user.fetch()).getEmail(), undefined);
    user.addUnique('tags', 'b');
    await user.save();
    const query = () => new Parse.Query(Parse.User).equalTo('tags', 'b');
    assert.equal((await query().include('friend').first()).id, ann.id);
    assert.equal(await query().count(as(bob)), 0);
    await bob.save({ email: 'ANN@example.org' }, as(bob));
    await fails(user.save({ email: 'ann@example.org' }), Parse.Error.EMAIL_TAKEN);
  },

  async 'the master key acts as anybody'({ ann }) {
    const user = await Parse.User.loginAs(ann.id);
    assert.equal(user.id, ann.id);
    assert.notEqual(user.getSessionToken(), ann.getSessionToken());
    assert.equal((await Parse.User.me(user.getSessionToken())).id, ann.id);
    const made = new Parse.User({ username: 'carl', password: PASSWORD, email: 'c@example.org' });
    await made.save(null, master);
    await made.save({ emailVerified: true }, master);
    assert.equal((await Parse.User.logIn('carl', PASSWORD)).get('emailVerified'), true);
  },

  async 'anonymous users and unknown services are refused'({ ann }) {
    await fails(Parse.AnonymousUtils.logIn(), Parse.Error.UNSUPPORTED_SERVICE);
    const authData = { id: '1', access_token: 'x' };
    const nowhere = { authData };
    await fails(Parse.User.logInWith('nowhere', nowhere), Parse.Error.UNSUPPORTED_SERVICE);
    const user = await Parse.User.become(ann.getSessionToken());
    await fails(user.linkWith('nowhere', nowhere), Parse.Error.UNSUPPORTED_SERVICE);
  },

  async 'an installation registers, and is the same the next time'() {
    const installation = await Parse.Installation.currentInstallation();
    installation.set({ deviceType: Parse.Installation.DEVICE_TYPES.WEB, channels: ['news'] });
    await installation.save();
    assert.ok(installation.id);
    const again = new Parse.Installation();
    again.set({ installationId: installation.installationId, deviceType: 'web', badge: 1 });
    await again.save();
    assert.equal(again.id, installation.id);
    await installation.save({ deviceToken: 'abc' });
    const stored = await new Parse.Query(Parse.Installation).find(master);
    assert.equal(stored.length, 1);
    assert.deepEqual(
      ['installationId', 'deviceToken', 'channels', 'badge'].map((name) => stored[0].get(name)),
      [installation.installationId, 'abc', ['news'], 1]);
    await fails(new Parse.Query(Parse.Installation).find(), Parse.Error.OPERATION_FORBIDDEN);
    // Removed by the operator, it registers anew.
    await new Parse.Schema('_Installation').purge();
    await installation.save({ badge: 2 });
    assert.notEqual(installation.id, stored[0].id);
    assert.equal(await new Parse.Query(Parse.Installation).count(master), 1);
  },

  async 'a password reset is asked for, whoever has the address'() {
    await Parse.User.requestPasswordReset('ann@example.org');
    await Parse.User.requestPasswordReset('nobody@example.org');
    await Parse.User.requestEmailVerification('nobody@example.org');
  },
};

main(checks, seed);
