// Users and notes for the applications here.
'use strict';

const { Parse, applicationId, javascriptKey, serverURL } = require('./runner');

Parse.User.enableUnsafeCurrentUser();
const master = { useMasterKey: true };
const PASSWORD = 'correct horse';
const Note = Parse.Object.extend('Note');
const texts = (objects) => objects.map((object) => object.get('text'));
const as = (user) => ({ sessionToken: user.getSessionToken() });

/** Somebody who signs up elsewhere: on another installation, and not as this one's current user. */
async function signUp(username) {
  const answer = await fetch(`${serverURL}/users`, {
    method: 'POST',
    body: JSON.stringify({
      _ApplicationId: applicationId,
      _JavaScriptKey: javascriptKey,
      username,
      password: PASSWORD,
      email: `${username}@example.org`,
    }),
  });
  return Parse.User.me((await answer.json()).sessionToken);
}

/** This installation has no current user. */
async function forget() {
  await Parse.Storage.removeItemAsync(Parse.Storage.generatePath('currentUser'));
  Parse.User._clearCache();
}

async function note(text, user, acl) {
  const made = new Note({ text });
  if (acl) made.setACL(acl);
  return made.save(null, user ? as(user) : undefined);
}

async function makeRole(name, { users = [], roles = [] }) {
  const acl = new Parse.ACL();
  acl.setPublicReadAccess(true);
  const role = new Parse.Role(name, acl);
  if (users.length) role.getUsers().add(users);
  if (roles.length) role.getRoles().add(roles);
  return role.save(null, master);
}

async function seed() {
  await forget();
  const schema = new Parse.Schema('Note');
  schema.addString('text').addPointer('author', '_User').addRelation('readers', '_User');
  schema.addFile('picture');
  await schema.save();
  return {
    ann: await signUp('ann'),
    bob: await signUp('bob'),
  };
}

module.exports = { Note, PASSWORD, as, makeRole, master, note, seed, texts };
