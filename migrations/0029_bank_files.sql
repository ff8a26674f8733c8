-- Files to banks about slips, and files of banks and store chains about what was paid.

-- What came, whole or not. It names payers, so its bytes are sealed. Nobody's: a file has slips of many merchants.
create table return_files (
  merchant_id  uuid not null,         -- the nil UUID
  id           uuid not null,
  hash         bytea not null unique check (length(hash) = 32),  -- SHA-256
  account      text not null,         -- as SLIPS_FILE names it
  name         text not null,         -- as it was called when it came first
  number       integer not null,      -- the account's count of its files; 0: it does not count, or nothing of this one was read
  made_on      date,
  refused      text,                  -- why nothing of it was read
  sealed       bytea not null,        -- its bytes
  received_at  timestamptz not null,  -- real time
  primary key (merchant_id, id)
);
create unique index return_files_by_number on return_files (account, number) where number > 0;

-- An order file is written down before it is on disk, so that whoever comes after a dead process writes the same bytes. It names payers: sealed until it
-- is on disk, and then gone. No number is left out. The orders of it are rows of slip_orders.
create table order_files (
  merchant_id  uuid not null,         -- the nil UUID
  id           uuid not null,
  account      text not null,
  sequence     integer not null check (sequence > 0),
  day          date not null,
  name         text not null,
  sealed       bytea,
  made_at      timestamptz not null,  -- real time
  written_at   timestamptz,
  primary key (merchant_id, id),
  constraint order_files_by_sequence unique (account, sequence),
  check ((sealed is null) = (written_at is not null))
);

-- A line may tell what moves no money.
alter table clearing_lines drop constraint clearing_lines_outcome_check;
alter table clearing_lines add constraint clearing_lines_outcome_check check (outcome in ('recorded', 'known', 'noted', 'refused'));
