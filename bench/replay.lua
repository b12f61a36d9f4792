-- For wrk: sends the requests of a file over and over, in order, and prints one line of JSON.
-- A line of the file is METHOD <tab> PATH <tab> BODY. Everything is made before the clock starts.

local prepared = {}
local current = 0

function init(args)
  local file = assert(io.open(args[1]))
  for line in file:lines() do
    local method, path, body = line:match("^(%u+)\t([^\t]+)\t?(.*)$")
    if body == "" then body = nil end
    prepared[#prepared + 1] = wrk.format(method, path, nil, body)
  end
  file:close()
end

function request()
  current = current % #prepared + 1
  return prepared[current]
end

function done(summary, latency)
  local failed = summary.errors
  print(string.format(
    '{"requests":%d,"seconds":%.6f,"p50_ms":%.4f,"p99_ms":%.4f,"max_ms":%.4f,"failed":%d}',
    summary.requests, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3,
    failed.status + failed.connect + failed.read + failed.write + failed.timeout
  ))
end
