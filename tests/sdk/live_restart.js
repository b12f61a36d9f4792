// A client of live queries whose server is started anew meanwhile. Prints one JSON line a step.
'use strict';

const { Parse, applicationId, javascriptKey } = require('./runner');

const say = (step) => console.log(JSON.stringify({ step }));

async function main() {
  const client = new Parse.LiveQueryClient({
    applicationId,
    javascriptKey,
    serverURL: process.argv[6],
  });
  client.on('close', () => say('closed'));
  client.open();
  const subscription = client.subscribe(new Parse.Query('Game'));
  // Said again when the SDK has subscribed anew.
  subscription.on('open', () => say('subscribed'));
  subscription.on('create', (game) => say(`created ${game.get('name')}`));
}

main();
