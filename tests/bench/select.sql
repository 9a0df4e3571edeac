\set id random(1, 100000)
SELECT answer FROM once WHERE key = 'evt_' || :id;
