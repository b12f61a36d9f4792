// Usage: node run_build.js node|react-native SERVER_URL LIVE_QUERY_URL APPLICATION_ID JAVASCRIPT_KEY
// Prints one line a check, as JSON: {"name", "error"}.
'use strict';

const Module = require('node:module');
const { runBuild } = require('./builds');

// React Native's own module of this name, of which the SDK uses two methods.
class EventEmitter extends require('node:events') {}
const emitter = 'react-native/Libraries/vendor/emitter/EventEmitter';
const load = Module._load;
Module._load = (name, ...rest) => (name === emitter ? EventEmitter : load(name, ...rest));

const [build, serverURL, liveQueryURL, applicationId, javascriptKey] = process.argv.slice(2);
// Node 20 has none; the SDK looks for it when it is loaded.
if (build === 'react-native') globalThis.WebSocket = require('ws');
let Parse = require(`parse/${build}`);
Parse = Parse.default || Parse;
if (build === 'react-native') {
  // What React Native provides.
  const stored = new Map();
  const called = (callback, value) => {
    if (callback) queueMicrotask(() => callback(null, value));
    return Promise.resolve(value);
  };
  const value = (key) => stored.get(key) ?? null;
  Parse.setAsyncStorage({
    getItem: (key, callback) => called(callback, value(key)),
    setItem: (key, text, callback) => called(callback, void stored.set(key, text)),
    removeItem: (key, callback) => called(callback, void stored.delete(key)),
    getAllKeys: (callback) => called(callback, [...stored.keys()]),
    multiGet: (keys, callback) => called(callback, keys.map((key) => [key, value(key)])),
    multiRemove: (keys, callback) => called(callback, keys.forEach((key) => stored.delete(key))),
    clear: (callback) => called(callback, stored.clear()),
  });
}
// As in an app: in Node, the SDK takes itself for a server's.
Parse.User.enableUnsafeCurrentUser();

runBuild(Parse, { serverURL, liveQueryURL, applicationId, javascriptKey }).then(
  (outcomes) => {
    for (const outcome of outcomes) console.log(JSON.stringify(outcome));
    process.exit(0);
  },
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
