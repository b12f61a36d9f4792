/* Draws the charts of a page with Chart.js, which unfold loads on every page of the admin.

   <figure class="sv-chart" data-chart>
     <figcaption>Title</figcaption>
     <script type="application/json">{"kind": "lines", "unit": "seconds", …}</script>
   </figure>

   or data-chart="ADDRESS" for JSON from there: {"kind": "bars" | "lines" | "pie", "unit": "" |
   "seconds" | "bytes", "times": [seconds since the epoch] or "labels": [texts], "zone": a time zone
   other than UTC, "series": [{"label", "colour": a name of charts.css, "values": numbers or null}]}.
   Each chart also has a table. */

const DAY = 86_400;
const charts = new Map();
const language = document.documentElement.lang || undefined;
const plain = new Intl.NumberFormat(language, { maximumFractionDigits: 2 });

/** Return a number with its unit, as short as people read it. */
export function inWords(value, unit) {
  if (value === null || value === undefined) return "-";
  if (unit === "seconds") {
    if (value < 1) return `${plain.format(Math.round(value * 10_000) / 10)} ms`;
    if (value < 120) return `${plain.format(value)} s`;
    if (value < 7200) return `${plain.format(Math.round(value / 60))} min`;
    return `${plain.format(Math.round(value / 360) / 10)} h`;
  }
  if (unit === "bytes") {
    const units = ["bytes", "KB", "MB", "GB", "TB", "PB"];
    let place = 0;
    while (value >= 1024 && place < units.length - 1) {
      value /= 1024;
      place += 1;
    }
    return `${plain.format(Math.round(value * 10) / 10)} ${units[place]}`;
  }
  return plain.format(value);
}

function labelsOf(data) {
  if (data.labels) return data.labels;
  const span = data.times.length ? data.times.at(-1) - data.times[0] : 0;
  const hours = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const days = span > DAY ? { day: "numeric", month: "short" } : {};
  const zone = { timeZone: data.zone ?? "UTC" };
  const format = new Intl.DateTimeFormat(language, { ...days, ...hours, ...zone });
  return data.times.map((time) => format.format(time * 1000));
}

function summary(title, data) {
  const parts = data.series.map((series) => {
    const values = series.values.filter((value) => value !== null);
    if (!values.length) return `${series.label}: no values`;
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const words = [least, most, values.at(-1)].map((value) => inWords(value, data.unit));
    return `${series.label}: from ${words[0]} to ${words[1]}, at last ${words[2]}`;
  });
  return `${title}. ${parts.join(". ")}.`;
}

function tableOf(data, labels) {
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const text of ["", ...data.series.map((series) => series.label)]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text;
    head.append(cell);
  }
  const body = table.createTBody();
  for (let place = labels.length - 1; place >= 0; place -= 1) {
    const row = body.insertRow();
    row.insertCell().textContent = labels[place];
    for (const series of data.series) {
      row.insertCell().textContent = inWords(series.values[place], data.unit);
    }
  }
  return table;
}

/** Return a step of the axis of bytes that is a round number in its unit. */
function stepOfBytes(series) {
  const most = Math.max(1, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const unit = 1024 ** Math.floor(Math.log(most) / Math.log(1024));
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 256];
  return unit * (steps.find((step) => unit * step * 4 >= most) ?? 256);
}

/** Return whether a value has no neighbour that a line could lead to. */
const isAlone = (values, place) =>
  (values[place - 1] ?? null) === null && (values[place + 1] ?? null) === null;

function configuration(figure, data, labels) {
  const style = getComputedStyle(figure);
  const colour = (name) => style.getPropertyValue(`--chart-${name}`).trim();
  const isPie = data.kind === "pie";
  const isBars = data.kind === "bars";
  const colours = ["first", "second", "third", "fourth", "good", "warning", "bad", "calm"];
  const datasets = data.series.map((series) => ({
    label: series.label,
    data: series.values,
    backgroundColor: isPie
      ? series.values.map((_, place) => colour(colours[place % colours.length]))
      : colour(series.colour),
    borderColor: isPie ? "transparent" : colour(series.colour),
    borderWidth: isBars || isPie ? 0 : 1.75,
    pointRadius: series.values.map((_, place) => (isAlone(series.values, place) ? 2 : 0)),
    pointHitRadius: 8,
    barPercentage: 0.9,
    categoryPercentage: 0.95,
    tension: 0,
  }));
  const ticks = { color: colour("text"), font: { size: 11 }, maxRotation: 0 };
  const scales = {
    x: {
      stacked: isBars,
      grid: { display: false },
      border: { color: colour("grid") },
      ticks: { ...ticks, autoSkipPadding: 24 },
    },
    y: {
      stacked: isBars,
      beginAtZero: true,
      grid: { color: colour("grid") },
      border: { display: false },
      ticks: {
        ...ticks,
        maxTicksLimit: 6,
        ...(data.unit === "bytes" ? { stepSize: stepOfBytes(data.series) } : {}),
        callback: (value) => inWords(value, data.unit),
      },
    },
  };
  return {
    type: isPie ? "doughnut" : isBars ? "bar" : "line",
    data: { labels, datasets },
    options: {
      animation: false,
      maintainAspectRatio: false,
      normalized: true,
      interaction: isPie ? {} : { mode: "index", intersect: false },
      scales: isPie ? {} : scales,
      plugins: {
        legend: {
          display: isPie || datasets.length > 1,
          position: "bottom",
          labels: { boxHeight: 8, boxWidth: 8, color: colour("text"), font: { size: 11 } },
        },
        tooltip: {
          callbacks: {
            label: (item) => {
              const label = isPie ? item.label : item.dataset.label;
              return ` ${label}: ${inWords(item.raw, data.unit)}`;
            },
          },
        },
      },
    },
  };
}

function draw(figure, data) {
  charts.get(figure)?.chart.destroy();
  const labels = labelsOf(data);
  let holder = figure.querySelector(".sv-chart-canvas");
  if (!holder) {
    holder = document.createElement("div");
    holder.className = "sv-chart-canvas";
    const details = document.createElement("details");
    const opener = document.createElement("summary");
    opener.textContent = "Table";
    const rows = document.createElement("div");
    rows.className = "sv-chart-rows";
    rows.tabIndex = 0;
    rows.setAttribute("role", "region");
    details.append(opener, rows);
    details.addEventListener("toggle", () => {
      if (details.open) rows.replaceChildren(tableOf(charts.get(figure).data, labels));
    });
    figure.append(holder, details);
  }
  const title = figure.querySelector("figcaption")?.textContent.trim() ?? "";
  figure.querySelector(".sv-chart-rows").setAttribute("aria-label", `${title}, as a table`);
  const canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", summary(title, data));
  holder.replaceChildren(canvas);
  charts.set(figure, { data, chart: new Chart(canvas, configuration(figure, data, labels)) });
}

/** Draw the charts in a part of the page, and forget those that have left it. */
export async function drawCharts(root = document) {
  for (const [figure, { chart }] of charts) {
    if (!figure.isConnected) {
      chart.destroy();
      charts.delete(figure);
    }
  }
  for (const figure of root.querySelectorAll("figure[data-chart]")) {
    const script = figure.querySelector('script[type="application/json"]');
    if (script) draw(figure, JSON.parse(script.textContent));
    else if (figure.dataset.chart) {
      const response = await fetch(figure.dataset.chart, { headers: { Accept: "application/json" } });
      if (response.ok) draw(figure, await response.json());
    }
  }
}

// Colours are read when a chart is drawn, so another scheme needs other charts.
new MutationObserver(() => {
  for (const [figure, { data }] of charts) draw(figure, data);
}).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
