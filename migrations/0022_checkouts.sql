-- Checkouts: what a merchant began and a shopper pays in a form, and each time that somebody pressed pay.

create table checkouts (
  merchant_id  uuid not null,
  id           uuid not null,         -- the hexadecimal part of its id on the wire
  channel_id   uuid not null,
  token_id     uuid not null,         -- that made it; its payments name it too
  sealed       bytea not null,        -- the parameters of its request
  fingerprint  bytea,                 -- of a request that carried an Idempotency-Key
  script_build text,                  -- the form's script that it is pinned to
  created_at   timestamptz not null,  -- business time, like all times here
  expires_at   timestamptz not null,
  ended_at     timestamptz,           -- its success was read, or it was deleted: nobody finds it any more
  constraint checkouts_pkey primary key (merchant_id, id)
);

-- One at a time: whoever adds an attempt holds the lock on its checkout, and adds the payment with it.
create table checkout_attempts (
  merchant_id uuid not null,
  checkout_id uuid not null,
  attempt     smallint not null constraint checkout_attempts_count check (attempt > 0),
  subject_id  uuid not null,          -- the payment; the registration where nothing is paid
  form        bytea not null,         -- keyed hash of what the shopper sent: the same form again is no new attempt
  made_at     timestamptz not null,
  constraint checkout_attempts_pkey primary key (merchant_id, checkout_id, attempt)
);
