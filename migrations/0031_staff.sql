-- The people who work with the back office: who they are, what they prove themselves with, and their sessions. Tables of the whole platform: somebody may
-- act for several merchants. Nothing in them shows a secret: passwords are hashed by argon2id, links and ids of sessions by a key, secrets are sealed.

create table staff (
  id            uuid primary key,
  name          text not null check (name = lower(name)),  -- an e-mail address, by which somebody signs in
  role          text not null,                             -- a row of src/staff/permissions.ts
  entities      uuid[] not null check (cardinality(entities) > 0),
  password      text,                                      -- as PHC strings are written; absent until a link was used
  sealed_totp   bytea,                                     -- the secret of the second factor
  factors_by    text,                                      -- who of the staff made the link by which they were set, and so could have used it
  totp_step     bigint not null default 0,                 -- the last half minute of which a code was taken: each code counts once
  made_at       timestamptz not null,                      -- real time, as all times here
  removed_at    timestamptz,
  check ((password is null) = (sealed_totp is null))
);
create unique index staff_by_name on staff (name) where removed_at is null;

-- Each signs somebody in once who lost the device of the second factor.
create table recovery_codes (
  staff_id uuid not null references staff (id),
  hash     bytea not null,
  primary key (staff_id, hash)
);

-- Links that work once: to set a password and a second factor, or, without somebody, to enter a sandbox.
create table staff_links (
  hash     bytea primary key,
  staff_id uuid references staff (id),
  made_by  text,                       -- another of the staff
  ends_at  timestamptz not null
);

create table staff_sessions (
  hash      bytea primary key,                     -- of what the browser's cookie holds
  id        uuid not null unique,                  -- by which it is shown and ended
  staff_id  uuid references staff (id),            -- absent: the developer of a sandbox, who came by a link
  begun_at  timestamptz not null,
  used_at   timestamptz not null,                  -- about: written once a minute at most
  proven_at timestamptz not null,                  -- when somebody last proved both factors
  address   text not null,
  agent     text not null
);
create index staff_sessions_by_staff on staff_sessions (staff_id);

-- Attempts to sign in, by whom (a keyed hash) and from which network, counted before a password is looked at.
create table sign_in_attempts (
  subject  text primary key,
  since    timestamptz not null,
  attempts integer not null
);
create index sign_in_attempts_by_time on sign_in_attempts (since);

-- Whoever of the staff looks after a case, and what was said of it while it was open.
alter table operator_cases add column owner text;
create table case_notes (
  merchant_id uuid not null,
  case_id     uuid not null,
  id          uuid not null,
  written_at  timestamptz not null,  -- real time
  written_by  text not null,
  kind        text not null check (kind in ('taken', 'released', 'note')),
  text        text not null,
  primary key (merchant_id, case_id, id),
  foreign key (merchant_id, case_id) references operator_cases (merchant_id, id)
);

-- The queue of what merchants were not told.
create index deliveries_given_up on deliveries (merchant_id, settled_at) where state = 'given up';

-- Captures, refunds and reversals that somebody of the staff ordered. Beyond some amount a colleague has to approve them before they are begun.
create table staff_orders (
  merchant_id uuid not null,
  id          uuid not null,
  payment_id  uuid not null,         -- to which the order refers
  root_id     uuid not null,         -- of its chain
  channel_id  uuid not null,
  type        text not null check (type in ('CP', 'RF', 'RV', 'transfer')),  -- transfer: where the money of a refund goes
  amount      bigint not null check (amount > 0),  -- hundredths
  currency    text not null,
  reason      text not null,
  sealed      bytea,                 -- of a transfer that waits: the bank data
  once        text not null,         -- of the form: a second press of its button is the same order
  asked_by    text not null,         -- as the audit names people
  asked_at    timestamptz not null,  -- real time
  waits       boolean not null,      -- for a colleague; else it was begun at once
  decision    text check (decision in ('approved', 'refused')),
  decided_by  text,
  decided_at  timestamptz,
  outcome     text,                  -- what became of it: the description of the result
  primary key (merchant_id, id),
  unique (merchant_id, payment_id, once),
  check ((decision is null) = (decided_by is null) and (decision is null) = (decided_at is null)),
  check (decision is null or waits),
  check (decided_by <> asked_by)     -- the second pair of eyes
);
create index staff_orders_waiting on staff_orders (merchant_id, asked_at) where waits;
create index staff_orders_of_chain on staff_orders (merchant_id, root_id, asked_at);
