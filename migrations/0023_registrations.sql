-- Registrations: payment details that were stored to be paid with again. A deleted one stays; its card is gone from sealed_cards, where it
-- stands under the owner and the id of the registration.

create table registrations (
  owner_id               uuid not null,         -- a merchant, or a division whose merchants all may use it
  id                     uuid not null,
  channel_id             uuid not null,         -- where it was made; the division where no channel was named
  payment_id             uuid,                  -- that it was made with: it counts once that is approved
  usable                 boolean not null,
  mode                   text not null constraint registrations_mode check (mode in ('internal', 'external', 'live')),
  brand                  text not null,
  record                 text not null,         -- JSON: what answers show of it
  fingerprint            bytea,                 -- keyed hash of the card number and the owner; absent for accounts
  erase_after            date,                  -- the last day of its card; absent for accounts
  network_transaction_id text,                  -- the network's name of the payment that began the agreement
  token_id               uuid,
  key_fingerprint        bytea,                 -- of a request that carried an Idempotency-Key
  made_at                timestamptz not null,  -- business time
  deleted_at             timestamptz,           -- business time
  constraint registrations_pkey primary key (owner_id, id)
);
create index registrations_by_card on registrations (owner_id, fingerprint) where deleted_at is null;
