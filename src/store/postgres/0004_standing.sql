-- How the epoch came there: a database that came back empty may have to be acknowledged.

ALTER TABLE @schema@.epoch ADD COLUMN standing text COLLATE "C" NOT NULL DEFAULT 'begun'
    CHECK (standing IN ('begun', 'emptied', 'acknowledged'));
COMMENT ON COLUMN @schema@.epoch.standing IS
    '`emptied` if somebody knew another epoch before: everything before was lost. `acknowledged` once '
    'a person has said that this is known';
