import { onchainTable } from 'ponder';

// What a row of ours holds.
export const event = onchainTable('event', (t) => ({
  id: t.text().primaryKey(),
  contractName: t.text(),
  eventName: t.text(),
  address: t.hex(),
  transactionHash: t.hex(),
  blockNumber: t.bigint(),
  blockHash: t.hex(),
  logIndex: t.integer(),
  transactionIndex: t.integer(),
  args: t.json(),
}));
