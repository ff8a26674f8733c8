-- What people block and allow: read by the risk check of payments whose rules have a rule of the list.

create table risk_entries (
  owner_id    uuid not null references entities (id),  -- a PSP, division, merchant or channel: it counts there and for all below
  kind        text not null constraint risk_entries_kind_check check (kind in ('email', 'ip', 'bin', 'card', 'customer', 'device')),
  value       text not null,                           -- in small letters; of a card its keyed hash
  id          uuid not null,
  list        text not null constraint risk_entries_list_check check (list in ('block', 'allow')),
  shown       text not null,                           -- as people read it; of a card the first six and the last four digits
  network     inet,                                    -- of an address: where it and others of its network are
  lookup_key  text,                                    -- of a card: which key made its hash
  reason      text not null,
  added_by    text not null,
  added_at    timestamptz not null,                    -- real time
  ends_at     timestamptz,                             -- business time from which on it does not count
  primary key (owner_id, kind, value),
  constraint risk_entries_network_check check ((kind = 'ip') = (network is not null)),
  constraint risk_entries_card_check check ((kind = 'card') = (lookup_key is not null))
);
create unique index risk_entries_by_id on risk_entries (id);
