-- Reconciliation: what acquirers and we say about the same day.

-- A payment without an approval that an acquirer had booked and took back when it was told: its totals count both.
create table taken_back (
  merchant_id uuid not null,
  payment_id  uuid not null,
  acquirer    text not null,
  heard_at    timestamptz not null,  -- real time
  primary key (merchant_id, payment_id)
);

-- The totals of one terminal, day and currency, and what the acquirer says to them. A table of the whole platform: no merchant owns a terminal.
-- Ours are written before they are sent, so that a repeat says the same.
create table day_totals (
  acquirer     text not null,
  day          date not null,
  terminal     text not null,
  currency     text not null,
  ours         text not null,                -- JSON: minor units
  trace        text not null,                -- DE11 of the message; empty where none is sent
  made_at      timestamptz not null,         -- DE7, real time
  attempts     integer not null default 0,
  theirs       text,                         -- JSON: as far as the acquirer says them
  balance      text check (balance in ('in', 'out', 'unknown')),  -- what the acquirer concludes
  answered_at  timestamptz,
  primary key (acquirer, day, terminal, currency)
);

-- Each of our bookings as a settlement file of its acquirer has it.
create table settled_bookings (
  merchant_id  uuid not null,
  payment_id   uuid not null,
  kind         text not null check (kind in ('debit', 'debitReversal', 'credit', 'creditReversal')),
  acquirer     text not null,
  day          date not null,                -- the acquirer's
  outcome      text not null check (outcome in ('matched', 'otherAmount')),
  hash         bytea not null,               -- the file and the line
  line         integer not null,
  settled_at   timestamptz not null,         -- real time
  primary key (merchant_id, payment_id, kind)
);
create index settled_bookings_by_day on settled_bookings (acquirer, day);

-- Days of which a settlement file was read to its end.
create table settled_days (
  acquirer     text not null,
  day          date not null,
  hash         bytea not null,
  read_at      timestamptz not null,         -- real time
  primary key (acquirer, day, hash)
);

-- Answers in which the acquirer names its own day (DE15). Others have no entry.
create index answers_settled_on on answers (merchant_id, substring(reply from '"settledOn":"([^"]+)"')) where reply like '%"settledOn"%';
