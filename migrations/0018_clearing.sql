-- Files of acquirers, banks and store chains, and what people have to decide.

-- A case is something that the gateway will not guess: a line that fits no payment, an answer that proves nothing. It waits until somebody closes it.
create table operator_cases (
  merchant_id  uuid not null,         -- of nobody's payment: the nil UUID
  id           uuid not null,
  kind         text not null,
  subject      text not null,         -- what it is about: a payment, or a line of a file
  details      text not null,         -- JSON
  opened_at    timestamptz not null,  -- real time
  closed_at    timestamptz,
  closed_by    text,
  reason       text,                  -- why it was closed
  primary key (merchant_id, id),
  check ((closed_at is null) = (closed_by is null) and (closed_at is null) = (reason is null))
);
-- Whoever finds the same thing again opens no second case while the first is open.
create unique index operator_cases_open on operator_cases (merchant_id, kind, subject) where closed_at is null;

-- A file is known by its bytes, whatever it is called. A table of the whole platform: a file has lines of many merchants.
create table clearing_files (
  hash         bytea primary key,     -- SHA-256
  kind         text not null,         -- which format
  name         text not null,         -- as it was called when it came first
  lines        integer not null,
  received_at  timestamptz not null,  -- real time
  finished_at  timestamptz            -- every line has a row
);

-- What became of each line, written with what it became.
create table clearing_lines (
  hash         bytea not null references clearing_files (hash),
  line         integer not null check (line > 0),
  outcome      text not null check (outcome in ('recorded', 'known', 'refused')),
  subject      text not null,         -- the payment that it became or was before; why it was refused
  settled_at   timestamptz not null,
  primary key (hash, line)
);
