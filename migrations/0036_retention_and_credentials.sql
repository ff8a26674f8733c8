-- What is kept for a time is erased by one worker: what it did last, and how many rows it took, kind by kind.
create table sweeps (
  kind     text primary key,
  taken_at timestamptz not null,            -- real time; whoever takes a kind takes it from the others for a while
  swept_at timestamptz,                     -- then nothing was left whose time was over
  erased   bigint not null default 0
);

-- Deliveries that are settled end too. Their endpoint goes on counting them, and looks for lost ones among those that are left.
alter table endpoints add column erased_acknowledged bigint not null default 0;
alter table endpoints add column erased_given_up bigint not null default 0;
alter table endpoints add column erased_before timestamptz;

-- A summary of pages only ever widens: where pages of erased rows are filled again, it leads to every page of the table.
drop index idempotency_keys_by_time;
drop index redirects_by_time;
drop index risk_attempts_by_time;
create index idempotency_keys_by_time on idempotency_keys (recorded_at);
create index redirects_by_time on redirects (made_at);
create index risk_attempts_by_time on risk_attempts (attempted_at);
create index sealed_cards_by_end on sealed_cards (erase_after); -- a posting list a day

-- The copy of what a bank sent ends, its number and its hash stay: a file counts once.
alter table return_files alter column sealed drop not null;

-- Certificates and the like stand in files of each machine: what it had at its last start, so that a change leaves a row in the audit.
create table credentials (
  machine     text not null,
  name        text not null,                -- the setting, and which of several in its file
  fingerprint text not null,
  seen_at     timestamptz not null,         -- real time: since when it is this one
  primary key (machine, name)
);
