-- Slips: a shopper takes one along and pays it at a bank or in a shop; banks and chains then tell what was paid.

-- Numbers are given out in blocks, never twice. A table of the whole platform: an account is the operator's, its slips are of many merchants.
create table slip_numbers (
  account text primary key,
  next    bigint not null check (next > 0)
);

-- Written with the answer that issues it. What the payer is called stands in the payment alone.
create table slips (
  merchant_id uuid not null,
  payment_id  uuid not null,
  account     text not null,         -- as SLIPS_FILE names it
  number      text not null,         -- nosso número without its digit, or the reference of a store slip
  document    text not null,         -- the merchant's own number, as the bank knows it
  due_on      date not null,
  amount      bigint not null check (amount > 0),
  currency    text not null,
  barcode     text not null,
  line        text not null,         -- as people type it
  link_hash   bytea not null,        -- SHA-256 of the token of its page
  issued_at   timestamptz not null,  -- business time
  primary key (merchant_id, payment_id)
);
-- A bank's return names no merchant.
create unique index slips_by_number on slips (account, number);
create unique index slips_by_link on slips (merchant_id, link_hash);

-- What a file to the bank has to say of a slip: that there is one, or that it shall not be paid any more. Written with the answer of the payment that
-- issues it, or of the reversal that orders it. In at most one file.
create table slip_orders (
  merchant_id uuid not null,
  payment_id  uuid not null,         -- the payment or the reversal
  slip_id     uuid not null,         -- the payment of the slip
  account     text not null,
  kind        text not null check (kind in ('entry', 'writeOff')),
  ordered_at  timestamptz not null,  -- real time
  sequence    integer,               -- its file, and its place there from 1
  line        integer,
  primary key (merchant_id, payment_id),
  check ((sequence is null) = (line is null))
);
create unique index slip_orders_by_place on slip_orders (account, sequence, line) where sequence is not null;
create index slip_orders_waiting on slip_orders (account, ordered_at) where sequence is null;

-- What was paid on a slip: each row is a payment of type RC. Its key is what a bank's files tell it apart by, so that none counts twice.
create table receipts (
  merchant_id uuid not null,
  payment_id  uuid not null,
  slip_id     uuid not null,
  account     text not null,
  key         text not null,
  paid_on     date not null,
  credited_on date,
  primary key (merchant_id, payment_id)
);
create unique index receipts_by_key on receipts (account, key);
