// Compiles the contracts of this folder into ../artefacts, a file of ABI and bytecode for each.
//
//   npm install --no-package-lock && npm run compile
//
// The artefacts are committed, so that tests need no compiler.
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');
const solc = require('solc');

const sources = {};
for (const name of fs.readdirSync(__dirname).filter((name) => name.endsWith('.sol')).sort()) {
  sources[name] = { content: fs.readFileSync(path.join(__dirname, name), 'utf8') };
}
const compiled = JSON.parse(
  solc.compile(
    JSON.stringify({
      language: 'Solidity',
      sources,
      settings: {
        optimizer: { enabled: true, runs: 200 },
        evmVersion: 'cancun',
        metadata: { bytecodeHash: 'none', appendCBOR: false },
        outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
      },
    }),
  ),
);
for (const error of compiled.errors || []) console.error(error.formattedMessage);
if ((compiled.errors || []).some((error) => error.severity === 'error')) process.exit(1);

const folder = path.join(__dirname, '..', 'artefacts');
fs.mkdirSync(folder, { recursive: true });
for (const contracts of Object.values(compiled.contracts)) {
  for (const [name, { abi, evm }] of Object.entries(contracts)) {
    if (!evm.bytecode.object) continue; // an interface
    const artefact = { abi, bytecode: '0x' + evm.bytecode.object };
    const lines = abi.map((item) => '    ' + JSON.stringify(item)).join(',\n');
    const text = `{\n  "abi": [\n${lines}\n  ],\n  "bytecode": "${artefact.bytecode}"\n}\n`;
    fs.writeFileSync(path.join(folder, name + '.json'), text);
  }
}
// A test compares these with the sources, so that nobody changes one and forgets to compile.
const sums = {};
for (const [name, { content }] of Object.entries(sources)) {
  sums[name] = crypto.createHash('sha256').update(content).digest('hex');
}
fs.writeFileSync(path.join(folder, 'sources.json'), JSON.stringify(sums, null, 2) + '\n');
console.log('compiled with', solc.version());
