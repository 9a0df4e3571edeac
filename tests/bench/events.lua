-- Sends events of about 1 KiB. With `new`, every request has a key of its own; with `copies`, all
-- requests share the same few keys.
--   wrk ... -s events.lua URL -- new|copies PREFIX KEYS

local threads = 0

function setup(thread)
   thread:set("number", threads)
   threads = threads + 1
end

function init(arguments)
   local what, prefix, keys = arguments[1], arguments[2], tonumber(arguments[3])
   local filler = string.rep("0123456789abcdef", 58)
   local body = '{"id":"evt_1","type":"order.paid","data":{"amount":1299,"note":"' .. filler .. '"}}'
   head = "POST " .. wrk.path .. " HTTP/1.1\r\nHost: " .. wrk.host .. "\r\n"
      .. "Content-Type: application/json\r\nContent-Length: " .. #body .. "\r\n"
      .. "X-Idempotency-Key: " .. prefix .. "-"
   tail = "\r\n\r\n" .. body
   sent = 0
   if what == "new" then
      head = head .. number .. "-"
   else
      -- The threads begin at different places, so that they do not ask for the same key at once.
      first = number * math.floor(keys / 2)
      modulus = keys
   end
end

function request()
   sent = sent + 1
   if modulus then
      return head .. (first + sent) % modulus .. tail
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
