import { createConfig } from 'ponder';

const abi = [
  {
    type: 'event',
    name: 'Transfer',
    inputs: [
      { indexed: true, name: 'from', type: 'address' },
      { indexed: true, name: 'to', type: 'address' },
      { indexed: true, name: 'tokenId', type: 'uint256' },
    ],
  },
] as const;

export default createConfig({
  database: { kind: 'postgres', connectionString: process.env.PONDER_BENCH_DATABASE },
  chains: { bench: { id: Number(process.env.PONDER_BENCH_CHAIN), rpc: process.env.PONDER_BENCH_RPC } },
  contracts: {
    Gem: {
      chain: 'bench',
      abi,
      address: process.env.PONDER_BENCH_ADDRESS as `0x${string}`,
      startBlock: 0,
    },
  },
});
