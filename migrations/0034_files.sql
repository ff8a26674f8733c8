-- Files that are owed to servers of merchants and others: receipts of a day, and reports that are made by a schedule. The owner is a merchant, or a division
-- or PSP whose merchants a report is about. Each is owed once for its source and period, whoever finds out that the period is over.
create table owed_files (
  owner_id  uuid not null,
  source    uuid not null,                  -- a schedule; 32 zeros: receipts
  day       date not null,                  -- the first of its period, business time, UTC
  form      text not null check (form in ('csv', 'json', 'xml')),
  made_at   timestamptz not null,           -- real time
  attempts  integer not null default 0,
  failure   text,                           -- of the last attempt
  records   integer,                        -- how many it held
  file_id   uuid,                           -- where its bytes are kept until they are delivered; absent where its period gives the same bytes again
  outcome   text check (outcome in ('delivered', 'givenUp')),
  ended_at  timestamptz,
  primary key (owner_id, source, day, form),
  check ((outcome is null) = (ended_at is null))
);
create index owed_files_scheduled on owed_files (owner_id, source, day) where outcome is null;
insert into owed_files (owner_id, source, day, form, made_at, attempts, failure, records, outcome, ended_at)
  select merchant_id, '00000000-0000-0000-0000-000000000000', day, form, made_at, attempts, failure, receipts, outcome, ended_at from receipt_files;
drop table receipt_files;

-- Bytes of files that were made and not taken yet, some at a time. Nothing stands in them that the tables beside them do not have in clear.
create table file_pieces (
  file_id  uuid not null,
  number   integer not null,
  content  bytea not null,
  primary key (file_id, number)
);

-- Which report goes where, and how often. What is changed is ended and made anew: what a schedule has delivered was delivered as it stands.
create table report_schedules (
  owner_id  uuid not null,                  -- merchant, division or PSP
  id        uuid not null,
  settings  jsonb not null,                 -- as src/reporting/schedules/schedule.ts reads them
  made_at   timestamptz not null,           -- real time
  made_by   text not null,                  -- as the audit names people
  ended_at  timestamptz,
  primary key (owner_id, id)
);

-- Files that take long, made for somebody of the staff while he does something else. They are about all merchants within his reach: a table of the platform.
create table exports (
  id         uuid primary key,
  asked_by   text not null,                 -- as the audit names people
  asked_at   timestamptz not null,          -- real time, as all times here
  ends_at    timestamptz not null,
  merchants  uuid[] not null,
  name       text not null,                 -- of the file
  source     jsonb not null,                -- what it is made of
  state      text not null default 'making' check (state in ('making', 'made', 'tooLarge')),
  place      jsonb,                         -- behind which record it goes on
  records    bigint not null default 0,
  total      bigint,                        -- how many there will be, about; absent until they are counted
  pieces     integer not null default 0,
  bytes      bigint not null default 0
);
create index exports_of_merchants on exports using gin (merchants);

-- Searches that somebody of the staff wants to find again.
create table saved_filters (
  staff_id  text not null,                  -- as the audit names people
  name      text not null,
  query     text not null,                  -- as the address of the page has it; no card number stands in it
  primary key (staff_id, name)
);
