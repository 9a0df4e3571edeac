-- The first version of the tables. `@schema@` stands for the quoted name of the schema.

CREATE TABLE @schema@.migrations (
    number integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE @schema@.migrations IS
    'Which changes of these tables were made';

CREATE TABLE @schema@.epoch (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    epoch uuid NOT NULL DEFAULT gen_random_uuid(),
    begun_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE @schema@.epoch IS
    'When these tables were made. If it changes, everything before was lost.';
INSERT INTO @schema@.epoch DEFAULT VALUES;

CREATE TABLE @schema@.operations (
    id text COLLATE "C" PRIMARY KEY CHECK (id ~ '^op_[0-9a-f]{32}$'),
    revision bigint NOT NULL,
    record bytea NOT NULL,
    route text COLLATE "C" NOT NULL,
    method text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    key jsonb NOT NULL,
    state text COLLATE "C" NOT NULL
        CHECK (state IN ('in_flight', 'uncertain', 'succeeded', 'failed', 'forgotten')),
    attempt integer NOT NULL,
    holder text COLLATE "C",
    created_at timestamptz NOT NULL,
    changes_at timestamptz NOT NULL,
    waited boolean NOT NULL DEFAULT false
) WITH (fillfactor = 80);
COMMENT ON TABLE @schema@.operations IS
    'What Onceward remembers, one row for each operation. Only `record` counts; the columns beside '
    'it say the same for people and indexes. To be read only: an operation is changed with the '
    '`onceward` command.';
COMMENT ON COLUMN @schema@.operations.id IS
    'The operation id, as in headers and logs';
COMMENT ON COLUMN @schema@.operations.revision IS
    'Names this state of the row: random, new with every change';
COMMENT ON COLUMN @schema@.operations.record IS
    'All that is remembered, the stored answer included: a version, a checksum, a binary record';
COMMENT ON COLUMN @schema@.operations.route IS
    'Name of the route';
COMMENT ON COLUMN @schema@.operations.method IS
    'HTTP method';
COMMENT ON COLUMN @schema@.operations.path IS
    'Path, as it was received';
COMMENT ON COLUMN @schema@.operations.key IS
    'The idempotency key: where it was found (`from`) and its `parts`';
COMMENT ON COLUMN @schema@.operations.state IS
    'The state as it was last written. An `in_flight` row whose `changes_at` has passed is uncertain; '
    'any other one whose `changes_at` has passed is no more';
COMMENT ON COLUMN @schema@.operations.attempt IS
    'Number of the latest attempt';
COMMENT ON COLUMN @schema@.operations.holder IS
    'The process that made the latest attempt';
COMMENT ON COLUMN @schema@.operations.created_at IS
    'When the first copy claimed it';
COMMENT ON COLUMN @schema@.operations.changes_at IS
    'When time alone changes it: the end of the lease, of the hold, or of the retention';
COMMENT ON COLUMN @schema@.operations.waited IS
    'Whether another copy waits for the end of the attempt in flight, or of the look-up under way';

CREATE INDEX operations_by_creation ON @schema@.operations (created_at, id);
CREATE INDEX operations_by_route ON @schema@.operations (route, created_at, id);
CREATE INDEX operations_by_state ON @schema@.operations (state, created_at, id);
CREATE INDEX operations_open ON @schema@.operations (changes_at)
    WHERE state IN ('in_flight', 'uncertain');
CREATE INDEX operations_settled ON @schema@.operations (changes_at)
    WHERE state IN ('succeeded', 'failed', 'forgotten');

CREATE FUNCTION @schema@.clock() RETURNS timestamptz
    LANGUAGE sql VOLATILE
    AS $$ SELECT pg_catalog.date_trunc('milliseconds', pg_catalog.clock_timestamp()) $$;
COMMENT ON FUNCTION @schema@.clock() IS
    'The time that all leases and retentions go by, in whole milliseconds';

CREATE FUNCTION @schema@.millis(at timestamptz) RETURNS bigint
    LANGUAGE sql STABLE STRICT
    AS $$ SELECT pg_catalog.round(EXTRACT(epoch FROM at) * 1000)::bigint $$;
COMMENT ON FUNCTION @schema@.millis(timestamptz) IS
    'Milliseconds since the Unix epoch';

CREATE FUNCTION @schema@.moment(millis bigint) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT
    AS $$ SELECT pg_catalog.to_timestamp(millis / 1000.0) $$;
COMMENT ON FUNCTION @schema@.moment(bigint) IS
    'The time so many milliseconds after the Unix epoch';
