import { ponder } from 'ponder:registry';
import { event as events } from 'ponder:schema';

ponder.on('Gem:Transfer', async ({ event, context }) => {
  await context.db.insert(events).values({
    id: event.id,
    contractName: 'Gem',
    eventName: 'Transfer',
    address: event.log.address,
    transactionHash: event.transaction.hash,
    blockNumber: event.block.number,
    blockHash: event.block.hash,
    logIndex: event.log.logIndex,
    transactionIndex: event.transaction.transactionIndex,
    args: {
      from: event.args.from,
      to: event.args.to,
      tokenId: event.args.tokenId.toString(),
    },
  });
});
