-- What a gateway needs to take card payments: who is calling, payments and their answers, the books, events, due work.
-- Tables of one merchant have merchant_id first in their primary key, so that tenants cannot cross and the schema can be
-- distributed by merchant. Tables of the whole platform carry it as a plain column.
-- Times named *_at of payments, answers, journal and events are business time (the movable clock of the merchant);
-- recorded_at, due_at and leases are real time.

create table entities (
  id              uuid primary key,
  kind            text not null check (kind in ('psp', 'division', 'merchant', 'channel')),
  parent_id       uuid references entities (id),
  merchant_id     uuid,  -- of a merchant its own id, of a channel its merchant's
  name            text not null,
  settings        jsonb not null default '{}',
  clock_offset_ms bigint not null default 0 check (clock_offset_ms >= 0),  -- merchants only; never backwards
  changed_at      timestamptz not null,
  check ((kind = 'psp') = (parent_id is null)),
  check ((kind in ('merchant', 'channel')) = (merchant_id is not null))
);

create table access_tokens (
  token_hash  bytea primary key,  -- keyed hash; the token itself is not stored
  id          uuid not null unique,
  merchant_id uuid,               -- when all entities belong to one merchant
  label       text not null,
  entities    uuid[] not null,
  legacy      boolean not null,   -- made of user id and password
  created_at  timestamptz not null,
  revoked_at  timestamptz
);

-- Rows are never changed. The first payment of a chain has neither root nor reference.
create table payments (
  merchant_id             uuid not null,
  id                      uuid not null,
  channel_id              uuid not null,
  root_id                 uuid,
  reference_id            uuid,
  payment_type            text not null,
  brand                   text,
  amount                  bigint check (amount between 0 and 999999999999),  -- hundredths
  currency                text,
  mode                    text not null check (mode in ('internal', 'external', 'live')),
  connector               text not null,
  merchant_transaction_id text,
  received_at             timestamptz not null,
  recorded_at             timestamptz not null,
  record                  text not null,  -- JSON: echoed parameters, masked card, ndc
  primary key (merchant_id, id),
  check ((root_id is null) = (reference_id is null))
);
create index payments_by_transaction on payments (merchant_id, merchant_transaction_id) where merchant_transaction_id is not null;
create index payments_by_time on payments (merchant_id, received_at);
create index payments_by_root on payments (merchant_id, root_id) where root_id is not null;

-- A payment without a row here is pending. The first insert wins: it is the only race between the request, recovery and a late reply.
create table answers (
  merchant_id uuid not null,
  payment_id  uuid not null,
  result      text not null,
  approved    boolean not null,
  reply       text not null,  -- JSON: what the connector needs for captures, refunds and reversals
  body        text not null,  -- JSON: the answer as it was given
  answered_at timestamptz not null,
  primary key (merchant_id, payment_id)
);

-- One row holds the one capture of a preauthorization; a declined capture gives it back.
create table captures (
  merchant_id uuid not null,
  payment_id  uuid not null,
  capture_id  uuid not null,
  primary key (merchant_id, payment_id)
);

-- Card number and expiry of a payment, sealed, because captures, refunds and reversals need the number.
create table sealed_cards (
  merchant_id uuid not null,
  payment_id  uuid not null,
  sealed      bytea not null,
  erase_after date not null,
  primary key (merchant_id, payment_id)
);

-- Double entry: one row is one transfer from credit to debit. A reserved transfer is pending until a later line posts or voids it.
create table journal (
  merchant_id uuid not null,
  payment_id  uuid not null,
  line        smallint not null,
  mode        text not null check (mode in ('internal', 'external', 'live')),
  currency    text not null,
  debit       text not null,
  credit      text not null,
  amount      bigint not null check (amount > 0),
  state       text not null check (state in ('pending', 'posted', 'voided')),
  booked_at   timestamptz not null,
  primary key (merchant_id, payment_id, line),
  check (debit <> credit)
);

-- What the merchant must hear of. Sequence 1 announces a pending state, 2 the final one.
create table events (
  merchant_id uuid not null,
  payment_id  uuid not null,
  sequence    smallint not null,
  type        text not null check (type in ('PAYMENT', 'REGISTRATION')),
  action      text check (action in ('CREATED', 'UPDATED', 'DELETED')),
  channel_id  uuid not null,
  root_id     uuid not null,
  occurred_at timestamptz not null,
  recorded_at timestamptz not null,
  primary key (merchant_id, payment_id, sequence)
);

create table idempotency_keys (
  merchant_id uuid not null,
  key_hash    bytea not null,  -- keyed hash of path and key
  fingerprint bytea not null,  -- keyed hash of the body without the CVV
  payment_id  uuid not null,
  recorded_at timestamptz not null,
  primary key (merchant_id, key_hash)
);
create index idempotency_keys_by_time on idempotency_keys using brin (recorded_at);

-- What must happen at some time, whoever is alive then. Taken with a lease by any process.
create table due_work (
  kind         text not null,
  merchant_id  uuid not null,
  subject_id   uuid not null,
  due_at       timestamptz not null,
  leased_until timestamptz,
  attempts     integer not null default 0,
  details      jsonb not null default '{}',
  primary key (kind, merchant_id, subject_id)
);
create index due_work_by_time on due_work (due_at);

-- How far the search for unanswered payments has come.
create table sweeps (
  name       text primary key,
  reached_at timestamptz not null
);

-- Proof that a process holds the keys that this database was written with.
create table key_checks (
  name  text primary key,
  proof bytea not null
);
