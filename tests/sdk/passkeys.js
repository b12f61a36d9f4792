// An application on the official SDK: users who sign up and in with passkeys, and their wallets.
'use strict';

const assert = require('node:assert/strict');
const { createHash, generateKeyPairSync, randomBytes, sign } = require('node:crypto');
const { Parse, fails, main, serverURL } = require('./runner');
const { seed } = require('./accounts');

const origin = new URL(serverURL).origin;
const sha256 = (data) => createHash('sha256').update(data).digest();
const pack = (data) => Buffer.from(data).toString('base64url');

/** The little of CBOR that an authenticator needs: small numbers, texts, bytes, maps of pairs. */
function cbor(value) {
  const head = (major, size) => {
    if (size < 24) return Buffer.from([(major << 5) | size]);
    if (size < 256) return Buffer.from([(major << 5) | 24, size]);
    return Buffer.from([(major << 5) | 25, size >> 8, size & 255]);
  };
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === 'string') return Buffer.concat([head(3, value.length), Buffer.from(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value]);
  return Buffer.concat([head(5, value.length), ...value.flat().map(cbor)]);
}

/** An authenticator with one passkey, as a browser would hand its answers on. */
class Authenticator {
  constructor() {
    this.id = randomBytes(32);
    this.key = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.counter = 0;
  }

  answer(response) {
    const id = pack(this.id);
    return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response };
  }

  data(domain, flags, attested = Buffer.alloc(0)) {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(++this.counter);
    return Buffer.concat([sha256(domain), Buffer.from([flags]), counter, attested]);
  }

  create({ challenge, rp, user }) {
    this.userHandle = user.id;
    const { x, y } = this.key.publicKey.export({ format: 'jwk' });
    const [X, Y] = [x, y].map((part) => Buffer.from(part, 'base64url'));
    const publicKey = cbor([[1, 2], [3, -7], [-1, 1], [-2, X], [-3, Y]]);
    const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([0, 32]), this.id, publicKey]);
    const authData = this.data(rp.id, 0x45, attested);
    return this.answer({
      clientDataJSON: pack(JSON.stringify({ type: 'webauthn.create', challenge, origin })),
      attestationObject: pack(cbor([['fmt', 'none'], ['attStmt', []], ['authData', authData]])),
    });
  }

  get({ challenge, rpId }) {
    const clientData = JSON.stringify({ type: 'webauthn.get', challenge, origin });
    const data = this.data(rpId, 0x05);
    const signed = Buffer.concat([data, sha256(clientData)]);
    return this.answer({
      clientDataJSON: pack(clientData),
      authenticatorData: pack(data),
      signature: pack(sign('sha256', signed, this.key.privateKey)),
      userHandle: this.userHandle,
    });
  }
}

async function register(username, authenticator = new Authenticator()) {
  const options = await Parse.Cloud.run('registerInit', { username });
  const { temporaryAuthenticationToken } = options;
  const signedChallenge = authenticator.create(options);
  return Parse.Cloud.run('registerComplete', { signedChallenge, temporaryAuthenticationToken });
}

const checks = {
  async 'signing up with a passkey gives a user to become'() {
    const { token, user } = await register('carl');
    const me = await Parse.User.become(token);
    assert.equal(me.id, user.id);
    assert.equal(me.get('username'), 'carl');
    assert.ok(me._isLinked('passkey'));
    await me.save({ colour: 'red' });
    assert.equal((await me.fetch()).get('colour'), 'red');
    await Parse.User.logOut();
  },

  async 'logging in with a passkey'() {
    const authenticator = new Authenticator();
    const { user } = await register('carl', authenticator);
    const options = await Parse.Cloud.run('passkeyLoginInit');
    const { temporaryAuthenticationToken } = options;
    const assertion = authenticator.get(options);
    const given = { assertion, temporaryAuthenticationToken };
    const answer = await Parse.Cloud.run('passkeyLoginComplete', given);
    assert.equal((await Parse.User.become(answer.token)).id, user.id);
    assert.equal((await Parse.Cloud.run('listPasskeys')).length, 1);
    await fails(Parse.Cloud.run('passkeyLoginComplete', given), Parse.Error.SCRIPT_FAILED);
    await Parse.User.logOut();
  },

  async 'wallets are listed by the session that registering gave'() {
    const { token, wallets } = await register('carl');
    assert.match(wallets[0].address, /^0x[0-9a-fA-F]{40}$/);
    assert.deepEqual((await Parse.Cloud.run('listWallets', { authToken: token })).wallets, wallets);
    const wrong = Parse.Cloud.run('listWallets', { authToken: 'r:0' });
    await fails(wrong, Parse.Error.INVALID_SESSION_TOKEN);
  },

  async 'what is missing or taken is told by its code'() {
    await fails(Parse.Cloud.run('registerInit'), Parse.Error.SCRIPT_FAILED);
    await fails(Parse.Cloud.run('registerComplete'), Parse.Error.SCRIPT_FAILED);
    await fails(Parse.Cloud.run('registerInit', { username: 'ann' }), Parse.Error.USERNAME_TAKEN);
  },

  async 'networks and contracts'() {
    assert.deepEqual(await Parse.Cloud.run('loadAllBlockchains'), []);
    const contracts = Parse.Cloud.run('loadSmartContractsForNetwork', { networkId: 1 });
    assert.deepEqual(await contracts, {});
    const url = Parse.Cloud.run('loadProviderUrl', { networkId: 1 });
    await fails(url, Parse.Error.SCRIPT_FAILED);
  },
};

main(checks, seed);
