-- Removes settled records whose retention has passed.
--
-- KEYS  1 created, 2 in_flight, 3 uncertain, 4 settled, 5 keys: the indexes of a shard
--       6.. the records that are due according to an index
-- ARGV  the operations of these records, as members of an index
--
-- Returns how many were removed, and the members whose records a rule must decide about.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local settled = { succeeded = true, failed = true, forgotten = true }
local removed, lapsed = 0, {}

for place, member in ipairs(ARGV) do
    local key = KEYS[place + 5]
    local found = redis.pcall('HMGET', key, 'state', 'changes_at')
    local changes_at = not found.err and tonumber(found[2] or '')
    if changes_at and changes_at > now then
        -- its end was moved to later since the index was read
    elseif changes_at and settled[found[1]] then
        redis.call('DEL', key)
        redis.call('ZREM', KEYS[4], member)
        redis.call('ZREM', KEYS[1], member)
        redis.call('ZREM', KEYS[5], member)
        removed = removed + 1
    elseif not found.err and redis.call('EXISTS', key) == 0 then
        -- another process has removed the record
        for index = 1, 5 do
            redis.call('ZREM', KEYS[index], member)
        end
    else
        lapsed[#lapsed + 1] = member
    end
end
return { removed, lapsed }
