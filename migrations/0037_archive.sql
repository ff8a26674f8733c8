-- Settled chains of payments that are old leave for files. What stays of them: which file each payment is in, and what they booked, day by day, so that
-- the sums of the journal and of the settlement reports are what they were.
create table archives (
  id          uuid primary key,
  name        text not null,                -- of the file, without its folder
  before      timestamptz not null,         -- of each chain everything was recorded before this
  began_at    timestamptz not null,
  proof       bytea,                        -- SHA-256 of the file, once it is written whole
  in_file     bigint not null default 0,    -- chains
  chains      bigint not null default 0,    -- that are out of the database
  payments    bigint not null default 0,
  lines       bigint not null default 0,    -- of the journal, posted
  ended_at    timestamptz,                  -- nothing more is taken out
  constraint archives_count check (in_file >= 0 and chains >= 0 and payments >= 0 and lines >= 0)
);
create unique index archives_by_name on archives (name);
create unique index archives_open on archives ((true)) where ended_at is null; -- one at a time

create table archived_payments (
  merchant_id uuid not null,
  payment_id  uuid not null,
  root_id     uuid not null,
  archive_id  uuid not null,
  primary key (merchant_id, payment_id),
  foreign key (archive_id) references archives (id)
);
create index archived_payments_by_archive on archived_payments (archive_id, merchant_id, root_id);

create table closing_sums (
  merchant_id uuid not null,
  archive_id  uuid not null,
  channel_id  uuid not null,
  day         date not null,                -- in UTC, when it was booked
  mode        text not null,
  currency    text not null,
  debit       text not null,
  credit      text not null,
  kind        text not null,                -- as settlement reports tell them apart
  count       bigint not null,
  matched     bigint not null,
  amount      bigint not null,
  primary key (merchant_id, day, archive_id, channel_id, mode, currency, debit, credit, kind),
  foreign key (archive_id) references archives (id),
  constraint closing_sums_count check (count > 0 and matched between 0 and count and amount > 0)
);
