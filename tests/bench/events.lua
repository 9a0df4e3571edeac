-- Sends events. With `new`, every request has a key of its own, the same ones in every run with this prefix; with
-- `copies`, all requests share the same few keys.
--   wrk -t 1 ... -s events.lua URL -- new|copies PREFIX KEYS BYTES

function init(arguments)
   local what, prefix, keys, bytes = arguments[1], arguments[2], tonumber(arguments[3]), tonumber(arguments[4])
   local begin, ending = '{"id":"evt_1","type":"order.paid","data":{"amount":1299,"note":"', '"}}'
   local body = begin .. string.rep("0", bytes - #begin - #ending) .. ending
   head = "POST " .. wrk.path .. " HTTP/1.1\r\nHost: " .. wrk.host .. "\r\n"
      .. "Content-Type: application/json\r\nContent-Length: " .. #body .. "\r\n"
      .. "X-Idempotency-Key: " .. prefix .. "-"
   tail = "\r\n\r\n" .. body
   sent = 0
   modulus = what == "copies" and keys
end

function request()
   sent = sent + 1
   if modulus then
      return head .. sent % modulus .. tail
   end
   return head .. sent .. tail
end

-- One line for the script: requests, microseconds (in all, median, 99th percentile), errors.
function done(summary, latency, requests)
   local errors = summary.errors
   io.write(string.format("result %d %d %d %d %d\n", summary.requests, summary.duration,
      latency:percentile(50), latency:percentile(99),
      errors.connect + errors.read + errors.write + errors.timeout + errors.status))
end
