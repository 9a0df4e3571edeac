-- Replaces one record of an operation by another, atomically.
--
-- KEYS  1 the record
--       2 created, 3 in_flight, 4 uncertain, 5 settled, 6 keys: the indexes of its shard; absent for
--       'look'
--       7 the epoch marker of the shard; absent if it need not be there
-- ARGV  1 the operation as a member of an index
--       2 the revision that must be there, '' for no record
--       3 '1' if the record's changes_at must have passed, '0' if it must not have
--       4 'look', 'remove' or 'put'
--       5 '1' if the caller waits for the end of an attempt in flight, or of a look-up under way
--       6, 7 the earliest and the latest time for the change
--       8 '1' if the change ends an attempt
--       9 '1' if a change that is there already must be written again, so that WAIT waits for it
--       10 the channel on which ends are published, 11 the message
--       12.. the new revision, record, state, changes_at, created_at, route, score in keys
--       19 the value that KEYS[7] must have
--
-- Returns {'done', now}; {'seen', now} or {'seen', now, revision, record}; {'unreadable', now};
-- {'denied', error}, {'emptied', now}: nothing was written.
--
-- Revisions are passed as text, because a number in Lua has 53 bits. Nothing is written before all is
-- compared, so that a server that is full or takes no writes still reports what it has. Such a server
-- turns away the first write, and then nothing is changed.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local at = string.format('%.0f', now)
local put = ARGV[4] == 'put'
local indexes = { in_flight = 3, uncertain = 4, succeeded = 5, failed = 5, forgotten = 5 }

local found = redis.pcall('HMGET', KEYS[1],
    'revision', 'record', 'state', 'changes_at', 'created_at', 'waited')
if found.err then
    if string.find(found.err, 'WRONGTYPE', 1, true) then
        return { 'unreadable', at }
    end
    return { 'denied', found.err }
end
local revision, record, state, created_at = found[1], found[2], found[3], found[5]
local changes_at, waited = tonumber(found[4] or ''), found[6] == '1'
if not (revision and record and indexes[state] and changes_at and created_at) then
    if redis.call('EXISTS', KEYS[1]) == 1 then
        return { 'unreadable', at }
    end
    revision, state = false, false
end

local function denied(reply)
    return type(reply) == 'table' and reply.err
end

if put and revision == ARGV[12] then
    -- this call was sent twice
    if ARGV[9] == '1' then
        local again = redis.pcall('HSET', KEYS[1], 'revision', revision)
        if denied(again) then
            return { 'denied', again.err }
        end
    end
    return { 'done', at }
end

local expected = (revision or '') == ARGV[2]
if expected and revision then
    expected = (changes_at <= now) == (ARGV[3] == '1')
end
if ARGV[4] == 'look' or not expected or now < tonumber(ARGV[6]) or now > tonumber(ARGV[7]) then
    if not revision then
        return { 'seen', at }
    end
    if ARGV[5] == '1' and (state == 'in_flight' or state == 'uncertain') and not waited then
        -- the server may turn this write away; the record can be returned all the same
        redis.pcall('HSET', KEYS[1], 'waited', '1')
    end
    return { 'seen', at, revision, record }
end

if put and ARGV[19] and redis.call('GET', KEYS[7]) ~= ARGV[19] then
    return { 'emptied', at }
end

local first
if put then
    local told = waited and ARGV[8] ~= '1' and '1' or '0'
    first = redis.pcall('HSET', KEYS[1], 'revision', ARGV[12], 'record', ARGV[13],
        'state', ARGV[14], 'changes_at', ARGV[15], 'created_at', ARGV[16], 'route', ARGV[17],
        'waited', told)
else
    first = redis.pcall('DEL', KEYS[1])
end
if denied(first) then
    return { 'denied', first.err }
end
local from, to = indexes[state], put and indexes[ARGV[14]]
if from and from ~= to then
    redis.call('ZREM', KEYS[from], ARGV[1])
end
if put then
    redis.call('ZADD', KEYS[to], ARGV[15], ARGV[1])
    if not revision or created_at ~= ARGV[16] then
        redis.call('ZADD', KEYS[2], ARGV[16], ARGV[1])
        redis.call('ZADD', KEYS[6], ARGV[18], ARGV[1])
    end
elseif revision then
    redis.call('ZREM', KEYS[2], ARGV[1])
    redis.call('ZREM', KEYS[6], ARGV[1])
end
if ARGV[8] == '1' and waited then
    -- without the right to publish, the change is made all the same; waiters ask again by themselves
    redis.pcall('PUBLISH', ARGV[10], ARGV[11])
end
return { 'done', at }
