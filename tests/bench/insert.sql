\set id random(1, 9000000000000000000)
INSERT INTO once (key, answer) VALUES ('evt_' || :id, 'received') ON CONFLICT DO NOTHING;
