-- The script of an older version, which runs on the same records while processes are upgraded.
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
