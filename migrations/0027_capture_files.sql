-- Captures that an acquirer wants in files.

-- A file is written down before it is on disk, so that whoever comes after a dead process writes the same bytes. A table of the whole platform: a file has
-- captures of many merchants. No number is left out: the next one is one more than the last.
create table capture_files (
  acquirer    text not null,
  sequence    integer not null check (sequence > 0),
  day         date not null,                 -- the acquirer's
  name        text not null,
  content     text not null,                 -- no card numbers
  made_at     timestamptz not null,          -- real time
  written_at  timestamptz,
  primary key (acquirer, sequence)
);

-- A capture that was answered and is not sent by itself: written with its answer. In at most one file.
create table collected_captures (
  merchant_id   uuid not null,
  payment_id    uuid not null,
  acquirer      text not null,
  said          text not null,               -- JSON: its line
  collected_at  timestamptz not null,        -- real time
  sequence      integer,                     -- its file, and its place there from 1
  line          integer,
  outcome       text check (outcome in ('accepted', 'rejected')),  -- what the acquirer says of it
  primary key (merchant_id, payment_id),
  foreign key (acquirer, sequence) references capture_files,
  check ((sequence is null) = (line is null))
);
create unique index collected_captures_by_place on collected_captures (acquirer, sequence, line) where sequence is not null;
create index collected_captures_waiting on collected_captures (acquirer, collected_at) where sequence is null;
