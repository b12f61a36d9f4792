// The least that a service can do: `node broadcast.js` sends every row of the outbox to every client
// of a socket server, with nothing but ws and pg from npm. Told by the same notification as ours.
'use strict';

const { Client } = require('pg');
const { WebSocketServer } = require('ws');

const rowsAfter = {
  name: 'after',
  text: `SELECT seq, payload FROM chain_outbox WHERE network_id = $1 AND seq > $2 AND op = 'added'
         ORDER BY seq`,
};

async function main() {
  const network = process.env.PEER_NETWORK;
  const sockets = new WebSocketServer({
    host: '127.0.0.1',
    port: Number(process.env.PEER_PORT),
    backlog: 1024,
    perMessageDeflate: false,
  });
  const database = new Client({ connectionString: process.env.PEER_DATABASE_URL });
  await database.connect();
  await database.query('LISTEN chain_outbox');
  let last = 0;
  let reading = false;
  let again = false;
  const read = async () => {
    again = true;
    if (reading) return;
    reading = true;
    while (again) {
      again = false;
      const { rows } = await database.query({ ...rowsAfter, values: [network, last] });
      for (const row of rows) {
        last = row.seq;
        const { eventName: event, args: data } = JSON.parse(row.payload);
        const frame = Buffer.from(JSON.stringify({ event, data }));
        for (const socket of sockets.clients) socket.send(frame, { binary: false });
      }
    }
    reading = false;
  };
  database.on('notification', read);
  if (sockets.address() === null) await new Promise((done) => sockets.once('listening', done));
  process.on('SIGTERM', () => process.exit(0));
  process.stdin.on('end', () => process.exit(0)).resume();
  console.log('ready');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
