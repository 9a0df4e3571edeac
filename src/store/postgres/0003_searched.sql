-- Operations are found by their key or event id.

CREATE FUNCTION @schema@.searched(key jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT
    AS $$ SELECT key -> 'parts' ->> CASE key ->> 'from' WHEN 'event' THEN 1 ELSE 0 END $$;
COMMENT ON FUNCTION @schema@.searched(jsonb) IS
    'What an operation is searched by: the value of a key header, the id of an event behind its '
    'source, the digest of a body';

-- a row of an index has less room than a key
CREATE INDEX operations_by_key ON @schema@.operations
    ((pg_catalog."left"(@schema@.searched(key), 255) COLLATE "C"), created_at, id);
