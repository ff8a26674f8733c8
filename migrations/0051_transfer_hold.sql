-- Where the database stood before files of transfers were held, when all that holds them is that nobody knew what became of it: a process that has lived through
-- a fail-over since then knows, as it does of merchants (held_after).
alter table installation add column transfers_held_after text;
