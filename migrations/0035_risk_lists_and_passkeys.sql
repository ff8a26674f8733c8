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

-- What people sign in with instead of a password and a code: a key in a device, which asks its owner first.
create table passkeys (
  id          text primary key,                        -- of the credential, as browsers write it (base64url)
  staff_id    uuid not null references staff (id),
  name        text not null,
  algorithm   smallint not null,                       -- of COSE: -7 ES256, -8 Ed25519, -257 RS256
  public_key  bytea not null,                          -- SPKI
  counter     bigint not null,                         -- of signatures, where the device counts; it only grows
  made_at     timestamptz not null,                    -- real time, as all times here
  used_at     timestamptz
);
create index passkeys_by_staff on passkeys (staff_id);

-- Challenges that were answered: none counts twice. Only what was answered rightly is written, and it goes when its challenge is too old anyway.
create table answered_challenges (
  hash     bytea primary key,
  ends_at  timestamptz not null
);
create index answered_challenges_by_end on answered_challenges (ends_at);
