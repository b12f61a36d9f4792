// Events as they are sent, on the admin's page of the live channel: the page is a client of /ws
// like any other, and goes on after the last message that it has seen.
"use strict";

(() => {
  const table = document.getElementById("live-events");
  const state = document.getElementById("live-state");
  if (!table || !state) return;
  const most = Number(state.dataset.most);
  let since = "now";
  let pause = 1000;

  const cell = (row, text, name) => {
    const made = row.insertCell();
    made.textContent = text;
    if (name) made.className = name;
    return made;
  };

  const show = (message) => {
    const row = table.insertRow(0);
    cell(row, message.networkId);
    cell(row, message.blockNumber, "sv-number");
    cell(row, message.contractName);
    const event = cell(row, message.event);
    if (message.removed) {
      const mark = document.createElement("span");
      mark.className = "sv-level sv-level-warning";
      mark.textContent = "removed";
      event.append(" ", mark);
    }
    cell(row, JSON.stringify(message.data), "sv-said");
    cell(row, message.transactionHash, "sv-event");
    while (table.rows.length > most) table.deleteRow(-1);
  };

  const connect = () => {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(
      `${scheme}//${location.host}/ws?event=*&reorg=1&since=${encodeURIComponent(since)}`,
    );
    socket.onopen = () => {
      pause = 1000;
      state.textContent = "Connected: new events appear here.";
    };
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.id) since = message.id;
      if (message.transactionHash) show(message);
    };
    socket.onclose = () => {
      state.textContent = "Not connected to /ws from here; trying again.";
      setTimeout(connect, pause);
      pause = Math.min(pause * 2, 30000);
    };
  };
  connect();
})();
