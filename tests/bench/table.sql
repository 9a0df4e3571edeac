CREATE TABLE once (key text PRIMARY KEY, answer bytea NOT NULL);
INSERT INTO once SELECT 'evt_' || id, 'received' FROM generate_series(1, 100000) AS id;
VACUUM ANALYZE once;
CHECKPOINT;
