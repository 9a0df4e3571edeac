-- One atomic step on one row: puts a record in the place of the one that is expected, or says what
-- is there instead. It looks first, so that a step that changes nothing writes and locks nothing.

CREATE FUNCTION @schema@.swap(
    the_id text,
    -- what must be there: no row if null; and whether its `changes_at` must have passed
    expected_revision bigint,
    expected_lapsed boolean,
    -- 'look', 'remove' or 'put'
    change text,
    new_revision bigint,
    new_record bytea,
    new_route text,
    new_method text,
    new_path text,
    new_key text,
    new_state text,
    new_attempt integer,
    new_holder text,
    new_created_at bigint,
    new_changes_at bigint,
    -- when it may be done
    not_before bigint,
    not_after bigint,
    is_durable boolean,
    -- an attempt ends by it
    ends boolean,
    -- somebody waits for the end of what is found: an attempt, or a look-up
    waits boolean,
    -- a change by another transaction that has not ended yet is waited for
    behind_all boolean,
    -- milliseconds to wait for others that change the row
    patience integer
) RETURNS TABLE (is_done boolean, at_millis bigint, found_revision bigint, found_record bytea)
    LANGUAGE plpgsql VOLATILE
    SET search_path = @schema@, pg_temp
    AS $$
DECLARE
    at timestamptz;
    found_state text;
    found_changes_at timestamptz;
    found_waited boolean;
    is_expected boolean;
    is_marked boolean;
    is_behind_all boolean := NOT behind_all;
    -- as the session has it: below it is set for the transaction
    durably CONSTANT text := CASE current_setting('synchronous_commit')
        WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END;
BEGIN
    -- Others may change the row between two statements. Each round means that somebody else got on.
    FOR round IN 1..100 LOOP
        SELECT o.revision, o.record, o.state, o.changes_at, o.waited
            INTO found_revision, found_record, found_state, found_changes_at, found_waited
            FROM operations o WHERE o.id = the_id;
        at := clock();
        at_millis := millis(at);
        IF found_revision = new_revision THEN
            -- this call was sent twice
            is_done := true;
            RETURN NEXT;
            RETURN;
        END IF;

        IF NOT is_behind_all THEN
            PERFORM set_config('lock_timeout', patience::text, true);
            PERFORM set_config('synchronous_commit', 'off', true);
            is_behind_all := true;
            PERFORM 1 FROM operations o WHERE o.id = the_id FOR UPDATE;
            IF NOT FOUND THEN
                -- a row that is being inserted is seen by its unique key alone
                INSERT INTO operations (id, revision, record, route, method, path, key, state,
                        attempt, created_at, changes_at)
                    VALUES (the_id, 0, '', '', '', '', '{}', 'forgotten', 0, at, at)
                    ON CONFLICT (id) DO NOTHING;
                IF FOUND THEN
                    DELETE FROM operations o WHERE o.id = the_id;
                END IF;
            END IF;
            CONTINUE;
        END IF;

        is_expected := change <> 'look'
            AND found_revision IS NOT DISTINCT FROM expected_revision
            AND (found_revision IS NULL OR (found_changes_at <= at) = expected_lapsed)
            AND at_millis BETWEEN not_before AND not_after;
        is_marked := coalesce(
                waits AND found_state IN ('in_flight', 'uncertain') AND NOT found_waited, false)
            -- where nothing can be written, nothing will end
            AND current_setting('transaction_read_only') = 'off';
        IF NOT is_expected AND NOT is_marked THEN
            is_done := false;
            RETURN NEXT;
            RETURN;
        END IF;

        -- until the end of the transaction only: the session may be another client's next
        PERFORM set_config('lock_timeout', patience::text, true);
        PERFORM set_config('synchronous_commit', CASE
            WHEN is_expected AND is_durable THEN durably ELSE 'off' END, true);

        IF NOT is_expected THEN
            UPDATE operations o SET waited = true
                WHERE o.id = the_id AND o.revision = found_revision;
            -- if it is gone, its end was told to nobody
            CONTINUE WHEN NOT FOUND;
            is_done := false;
            RETURN NEXT;
            RETURN;
        END IF;

        -- who began to wait since it was looked at makes another round of it
        IF change = 'remove' THEN
            DELETE FROM operations o
                WHERE o.id = the_id AND o.revision = expected_revision
                    AND o.waited = found_waited;
        ELSIF expected_revision IS NULL THEN
            INSERT INTO operations (id, revision, record, route, method, path, key, state,
                    attempt, holder, created_at, changes_at)
                VALUES (the_id, new_revision, new_record, new_route, new_method, new_path,
                    new_key::jsonb, new_state, new_attempt, new_holder, moment(new_created_at),
                    moment(new_changes_at))
                ON CONFLICT (id) DO NOTHING;
        ELSE
            UPDATE operations o SET revision = new_revision, record = new_record,
                    route = new_route, method = new_method, path = new_path, key = new_key::jsonb,
                    state = new_state, attempt = new_attempt, holder = new_holder,
                    created_at = moment(new_created_at), changes_at = moment(new_changes_at),
                    -- who waited for an end is told of it
                    waited = found_waited AND NOT ends
                WHERE o.id = the_id AND o.revision = expected_revision
                    AND o.waited = found_waited;
        END IF;
        CONTINUE WHEN NOT FOUND;

        -- it may have waited for others meanwhile
        at := clock();
        at_millis := millis(at);
        IF at_millis NOT BETWEEN not_before AND not_after
            OR (found_changes_at <= at) IS DISTINCT FROM (
                CASE WHEN found_revision IS NULL THEN NULL ELSE expected_lapsed END)
        THEN
            RAISE serialization_failure USING MESSAGE = 'the time of this change has passed';
        END IF;
        IF ends AND found_waited THEN
            -- notifications make commits queue: only where somebody waits
            PERFORM pg_notify('onceward_ended', the_id);
        END IF;
        is_done := true;
        found_revision := NULL;
        found_record := NULL;
        RETURN NEXT;
        RETURN;
    END LOOP;
    RAISE serialization_failure USING MESSAGE = 'the operation is changed without a pause';
END
$$;
COMMENT ON FUNCTION @schema@.swap IS
    'One atomic step on one operation; for Onceward alone';
