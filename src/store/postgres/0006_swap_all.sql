-- As before, but it reads each array in place, because a scan of many arrays copies every value. If
-- all steps were made, it looks up none of them again.
CREATE OR REPLACE FUNCTION @schema@.swap_all(
    -- one element for each step, in the order of the ids, so that two transactions that change the
    -- same rows do not wait for each other; the same meaning as in `swap`
    the_ids text[],
    expected_revisions bigint[],
    -- no revision for a step that only looks
    new_revisions bigint[],
    new_records bytea[],
    new_routes text[],
    new_methods text[],
    new_paths text[],
    new_keys text[],
    new_states text[],
    new_attempts integer[],
    new_holders text[],
    new_created_at bigint[],
    new_changes_at bigint[],
    -- Whether a row must have lapsed follows from these two.
    not_before bigint[],
    not_after bigint[],
    ends boolean[],
    waits boolean[],
    -- for all of them; null if all of them only look
    is_durable boolean,
    -- milliseconds to wait for others that change a row; a step with less time left is not made
    patience integer,
    -- the bytes of the records that it returns, but for the last one
    bytes_max bigint
) RETURNS TABLE (
    is_done boolean, at_millis bigint, found_revision bigint, found_record bytea, number bigint
)
    LANGUAGE plpgsql VOLATILE
    SET search_path = @schema@, pg_temp
    -- A session keeps its plan, which must not be one for a table that was still small. With these
    -- settings the plan looks up each row by its id, in the order of the elements.
    SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    AS $$
DECLARE
    begun_at CONSTANT bigint := millis(clock());
    at bigint;
    inserted bigint := 0;
    updated bigint := 0;
BEGIN
    IF is_durable IS NOT NULL THEN
        -- until the end of the transaction only: the session may be another client's next
        PERFORM set_config('lock_timeout', patience::text, true),
            set_config('synchronous_commit', CASE
                WHEN NOT is_durable THEN 'off'
                WHEN current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply'
                ELSE 'on' END, true);

        IF array_position(expected_revisions, NULL) IS NOT NULL THEN
            INSERT INTO operations (id, revision, record, route, method, path, key, state,
                    attempt, holder, created_at, changes_at)
                SELECT the_ids[n], new_revisions[n], new_records[n], new_routes[n],
                        new_methods[n], new_paths[n], new_keys[n]::jsonb, new_states[n],
                        new_attempts[n], new_holders[n], moment(new_created_at[n]),
                        moment(new_changes_at[n])
                    FROM generate_subscripts(the_ids, 1) AS n
                    WHERE expected_revisions[n] IS NULL AND new_revisions[n] IS NOT NULL
                        AND begun_at BETWEEN not_before[n] AND not_after[n] - patience
                        AND NOT EXISTS (SELECT FROM operations o WHERE o.id = the_ids[n])
                ON CONFLICT (id) DO NOTHING;
            GET DIAGNOSTICS inserted = ROW_COUNT;
        END IF;

        IF cardinality(array_remove(expected_revisions, NULL)) > 0 THEN
            UPDATE operations o SET revision = new_revisions[n], record = new_records[n],
                    route = new_routes[n], method = new_methods[n], path = new_paths[n],
                    key = new_keys[n]::jsonb, state = new_states[n], attempt = new_attempts[n],
                    holder = new_holders[n], created_at = moment(new_created_at[n]),
                    changes_at = moment(new_changes_at[n])
                FROM generate_subscripts(the_ids, 1) AS n
                WHERE o.id = the_ids[n] AND o.revision = expected_revisions[n]
                    AND new_revisions[n] IS NOT NULL
                    AND begun_at BETWEEN not_before[n] AND not_after[n] - patience
                    -- who waits for an end is told of it
                    AND NOT (ends[n] AND o.waited);
            GET DIAGNOSTICS updated = ROW_COUNT;
        END IF;

        -- it may have waited for others meanwhile, or somebody has set the clock
        at := millis(clock());
        IF at NOT BETWEEN begun_at AND begun_at + patience AND EXISTS (
            SELECT FROM generate_subscripts(the_ids, 1) AS n
                WHERE new_revisions[n] IS NOT NULL
                    AND begun_at BETWEEN not_before[n] AND not_after[n] - patience
                    AND at NOT BETWEEN not_before[n] AND not_after[n])
        THEN
            RAISE object_not_in_prerequisite_state
                USING MESSAGE = 'the time of a change has passed';
        END IF;

        -- all of them were made: there is nothing to look up
        IF inserted + updated = cardinality(the_ids) THEN
            RETURN QUERY SELECT true, at, new_revisions[n], NULL::bytea, n::bigint
                FROM generate_subscripts(the_ids, 1) AS n;
            RETURN;
        END IF;
    END IF;

    RETURN QUERY SELECT f.is_done, f.at_millis, f.revision, f.record, f.number FROM (
            SELECT coalesce(o.revision = a.revision, false) AS is_done,
                    (SELECT millis(clock())) AS at_millis, o.revision,
                    CASE WHEN o.revision IS DISTINCT FROM a.revision THEN o.record END AS record,
                    a.number,
                    sum(CASE WHEN o.revision IS DISTINCT FROM a.revision
                        THEN octet_length(o.record) END)
                        OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
                FROM unnest(the_ids, expected_revisions, new_revisions, waits) WITH ORDINALITY
                        AS a (id, expected_revision, revision, waits, number)
                    LEFT JOIN operations o ON o.id = a.id
                WHERE o.revision = a.revision OR NOT (
                    -- it finds what it expects, and still was not made
                    a.revision IS NOT NULL AND o.revision IS NOT DISTINCT FROM a.expected_revision
                    -- that its caller waits has to be noted
                    OR a.waits AND o.waited IS FALSE AND o.state IN ('in_flight', 'uncertain'))
        ) AS f
        -- what does not fit into the memory that a group may take is read alone
        WHERE f.is_done OR f.bytes_before IS NULL OR f.bytes_before < bytes_max;
END
$$;
