-- Replaces one record of an operation by another, atomically, or only reads it.
--
-- KEYS  1 the record
--       for a write also
--       2, 3 the index that the operation leaves and the one that it enters; the same key if it
--       stays where it is or is removed
--       4, 5 created, keys: the other indexes; absent if the operation stays in them as it is
--       the last one: the epoch marker of the shard; absent if it need not be there
-- ARGV  1 letters: 'p' puts a record, 'r' removes it, and without both it is only read;
--         'l' the record's changes_at must have passed, and without 'l' it must not have;
--         'w' the caller waits for the end of an attempt in flight, or of a look-up under way;
--         'a' a change that is there already must be written again, so that WAIT waits for it;
--         'e' the last key must have the value in the last argument
--       for a write also
--       2 the operation as a member of an index
--       3 the revision that must be there, '' for no record
--       4, 5 the earliest and the latest time for the change
--       6 the channel on which the end of an attempt is published, '' if the change ends none
--       for a record that is put also
--       7.. its revision, record, state, changes_at
--       11.. with KEYS[4] and KEYS[5]: its created_at, route, score in keys
--
-- Returns now: the write was made. Otherwise nothing was written, and it returns
-- {'seen', now} or {'seen', now, revision, record}; {'unreadable', now}; {'denied', error};
-- {'emptied', now}.
--
-- Each key, argument and call costs the server time, and the server has only one thread for all of
-- them. So a call brings only what it needs, and the caller, who knows the record that must be
-- there, also names its index.
--
-- Revisions are passed as text, because a number in Lua has 53 bits. Nothing is written before all is
-- compared, so that a server that is full or takes no writes still reports what it has. Such a server
-- turns away the first write, and then nothing is changed.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local letters = ARGV[1]
local put = string.find(letters, 'p', 1, true)

local found = redis.pcall('HMGET', KEYS[1], 'revision', 'record', 'state', 'changes_at', 'waited')
if found.err then
    if string.find(found.err, 'WRONGTYPE', 1, true) then
        return { 'unreadable', now }
    end
    return { 'denied', found.err }
end
local revision, record, state = found[1], found[2], found[3]
local changes_at, waited = tonumber(found[4] or ''), found[5] == '1'
local open = state == 'in_flight' or state == 'uncertain'
local known = open or state == 'succeeded' or state == 'failed' or state == 'forgotten'
if not (revision and record and known and changes_at) then
    if redis.call('EXISTS', KEYS[1]) == 1 then
        return { 'unreadable', now }
    end
    revision, open = false, false
end

if put and revision == ARGV[7] then
    -- this call was sent twice
    if string.find(letters, 'a', 1, true) then
        local again = redis.pcall('HSET', KEYS[1], 'revision', revision)
        if type(again) == 'table' then
            return { 'denied', again.err }
        end
    end
    return now
end

local expected = KEYS[2] and (revision or '') == ARGV[3]
    and now >= tonumber(ARGV[4]) and now <= tonumber(ARGV[5])
if expected and revision then
    expected = (changes_at <= now) == (string.find(letters, 'l', 1, true) ~= nil)
end
if not expected then
    if not revision then
        return { 'seen', now }
    end
    if open and not waited and string.find(letters, 'w', 1, true) then
        -- the server may turn this write away; the record can be returned all the same
        redis.pcall('HSET', KEYS[1], 'waited', '1')
    end
    return { 'seen', now, revision, record }
end

if string.find(letters, 'e', 1, true) and redis.call('GET', KEYS[#KEYS]) ~= ARGV[#ARGV] then
    return { 'emptied', now }
end

local first
if not put then
    first = redis.pcall('DEL', KEYS[1])
elseif KEYS[5] then
    first = redis.pcall('HSET', KEYS[1], 'revision', ARGV[7], 'record', ARGV[8],
        'state', ARGV[9], 'changes_at', ARGV[10], 'created_at', ARGV[11], 'route', ARGV[12])
else
    first = redis.pcall('HSET', KEYS[1], 'revision', ARGV[7], 'record', ARGV[8],
        'state', ARGV[9], 'changes_at', ARGV[10])
end
if type(first) == 'table' then
    return { 'denied', first.err }
end

local member = ARGV[2]
if put then
    if revision and KEYS[2] ~= KEYS[3] then
        redis.call('ZREM', KEYS[2], member)
    end
    redis.call('ZADD', KEYS[3], ARGV[10], member)
    if KEYS[5] then
        redis.call('ZADD', KEYS[4], ARGV[11], member)
        redis.call('ZADD', KEYS[5], ARGV[13], member)
    end
else
    redis.call('ZREM', KEYS[2], member)
    redis.call('ZREM', KEYS[4], member)
    redis.call('ZREM', KEYS[5], member)
end
if waited and ARGV[6] ~= '' then
    if put then
        redis.call('HSET', KEYS[1], 'waited', '0')
    end
    -- without the right to publish, the change is made all the same; waiters ask again by themselves
    redis.pcall('PUBLISH', ARGV[6], 'op_' .. member)
end
return now
