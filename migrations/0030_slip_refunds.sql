-- Refunds of receipts: no connector carries them. Each is an order to transfer money to the shopper's bank account.

-- A file of orders to a bank. Its bytes are made of the orders again whenever they are needed: they hold what the orders have sealed. No number is left out:
-- the next one is one more than the last. A table of the whole platform: a file has orders of many merchants.
create table transfer_files (
  account    text not null,               -- as SLIPS_FILE names it
  sequence   integer not null check (sequence > 0),
  made_at    timestamptz not null,        -- real time; it stands in the file
  written_at timestamptz,
  primary key (account, sequence)
);

-- Written with the refund, in its transaction. In at most one file.
create table refund_transfers (
  merchant_id uuid not null,
  payment_id  uuid not null,              -- the refund
  account     text not null,              -- that issued the slip, and pays
  sealed      bytea,                      -- where the money goes; absent until somebody has entered it, and some time after the end
  ordered_at  timestamptz not null,       -- real time
  sequence    integer,                    -- its file, and its place there from 1
  line        integer,
  primary key (merchant_id, payment_id),
  foreign key (account, sequence) references transfer_files,
  check ((sequence is null) = (line is null))
);
create unique index refund_transfers_by_place on refund_transfers (account, sequence, line) where sequence is not null;
create index refund_transfers_sealed on refund_transfers (ordered_at) where sealed is not null;
create index refund_transfers_waiting on refund_transfers (account, ordered_at) where sequence is null;

-- Files of a day's receipts for the servers of merchants. A file's bytes are made of its day again whenever they are needed: what was received on a day that
-- is over does not change.
create table receipt_files (
  merchant_id uuid not null,
  day         date not null,              -- business time, UTC
  form        text not null check (form in ('csv', 'xml')),
  made_at     timestamptz not null,       -- real time
  attempts    integer not null default 0,
  failure     text,                       -- of the last attempt
  receipts    integer,                    -- how many it held
  outcome     text check (outcome in ('delivered', 'givenUp')),
  ended_at    timestamptz,
  primary key (merchant_id, day, form),
  check ((outcome is null) = (ended_at is null))
);
create index receipt_files_scheduled on receipt_files (merchant_id, day) where outcome is null;
