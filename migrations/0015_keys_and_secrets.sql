-- Secrets that must leave no trace, and keys that can be retired.

-- The CVV while its shopper is at a 3-D Secure challenge. Unlogged: it is in no write-ahead log, no standby and no base backup, and after a
-- crash of the server it is empty. The table is written anew while it is in use, so that no file keeps a deleted row.
create unlogged table challenge_secrets (
  merchant_id uuid not null,
  payment_id  uuid not null,
  sealed      bytea not null,
  erase_after timestamptz not null,  -- real time
  primary key (merchant_id, payment_id)
);
insert into challenge_secrets (merchant_id, payment_id, sealed, erase_after)
select merchant_id, payment_id, secret, deadline from continuations where secret is not null;
alter table continuations drop column secret;

-- Since when a key is written with: what it finds for a while only, an older key may still have to find.
alter table key_checks add column made_at timestamptz;

-- Which lookup key made the hash. Absent: the only one that there was before keys could be changed.
alter table access_tokens add column lookup_key text;
