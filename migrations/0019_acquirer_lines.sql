-- Terminals: who holds one may have slept while another took it, and people want to see the lines of every process.

-- Grows whenever a terminal changes hands: a process that slept and comes back gets no trace numbers for what it held once.
alter table terminals add column fence integer not null default 0;
-- JSON: what the holder said of its lines when it renewed its lease.
alter table terminals add column lines text;
alter table terminals add column seen_at timestamptz;  -- real time
