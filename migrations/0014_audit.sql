-- Who did what: a chain of rows that can only grow, the guesses at credentials of the running minutes, and the token that made a payment.

-- Rows are only ever added. Each hash is keyed and covers the row and the hash before it, so that a row that was changed, taken out or moved
-- shows. A table of the whole platform: what an operator does belongs to no merchant.
create table audit (
  sequence    bigint primary key check (sequence > 0),  -- 1, 2, 3 … without gaps
  recorded_at timestamptz not null,                     -- real time
  actor_kind  text not null check (actor_kind in ('token', 'user', 'commandLine', 'gateway', 'stranger')),
  actor       text not null,                            -- id of a token or a user, the machine's user, or what a stranger is told apart by
  address     text not null,                            -- where from: an address of the network, or the machine
  action      text not null,
  entity_id   uuid,                                     -- on whose behalf: a channel, merchant, division or psp
  subject     text not null,                            -- id of what it was done to
  result      text not null check (result in ('done', 'refused')),
  details     text not null,                            -- JSON, kept as text because the hash covers its bytes
  hash        bytea not null
);
create index audit_by_time on audit (recorded_at);

-- How far the chain goes, sealed by a keyed hash: a chain that lost its last rows is shorter than this says. Its lock puts writers in a row.
create table audit_head (
  single   boolean primary key default true check (single),
  sequence bigint not null,
  proof    bytea
);
insert into audit_head (sequence) values (0);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % are never changed or taken out', tg_table_name;
end
$$;
create trigger audit_grows before update or delete or truncate on audit for each statement execute function refuse_change();
alter table audit enable always trigger audit_grows;
create trigger audit_head_stays before delete or truncate on audit_head for each statement execute function refuse_change();
alter table audit_head enable always trigger audit_head_stays;
-- The gateway's role owns the tables; it gives these rights away. Superusers keep them, and meet the triggers.
revoke update, delete, truncate on audit from public, current_user;
revoke delete, truncate on audit_head from public, current_user;

-- Failed attempts to authenticate, of all processes, by the minute. They become rows of the audit when their minute is over.
create table log_in_failures (
  minute   timestamptz not null,
  kind     text not null check (kind in ('all', 'address', 'user', 'credential')),
  subject  text not null,
  failures integer not null,
  primary key (minute, kind, subject)
);

-- Which token made a payment, capture, refund or reversal; absent when no token did, as with chargebacks.
alter table payments add column token_id uuid;
