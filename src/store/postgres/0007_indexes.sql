-- Fewer indexes, and one check less: every claim and every success paid for them.

-- While this waits for the lock, all later statements wait behind it. So it waits for a short time.
SET LOCAL lock_timeout = '100ms';
LOCK TABLE @schema@.operations IN ACCESS EXCLUSIVE MODE;

-- A list of one route reads the operations of all routes, a limited number for each page.
DROP INDEX IF EXISTS @schema@.operations_by_route;

-- Neither a claim nor a success changes an index of the other states. What is in flight is found by
-- `operations_open`.
SET LOCAL search_path = @schema@, pg_temp;
DO $$
BEGIN
    -- On a larger table this would take too long under the lock. There the index of all states goes
    -- on serving the lists, until somebody replaces it.
    IF pg_relation_size('operations') <= 256 * 1024 * 1024 THEN
        CREATE INDEX IF NOT EXISTS operations_by_rare_state
            ON operations (state, created_at, id)
            WHERE state IN ('uncertain', 'failed', 'forgotten');
        DROP INDEX IF EXISTS operations_by_state;
    END IF;
END
$$;

-- Ids come from the program, which parses them when it reads them.
ALTER TABLE @schema@.operations DROP CONSTRAINT IF EXISTS operations_id_check;
