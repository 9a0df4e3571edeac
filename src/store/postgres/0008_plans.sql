-- The program says with each call which plans the function uses: see `function.rs`.

ALTER FUNCTION @schema@.swap_all RESET plan_cache_mode;
