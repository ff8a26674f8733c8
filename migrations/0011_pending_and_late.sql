-- What a payment that waits was answered, and what came after a payment had ended.

-- The pending answer as it was given: for its notification, for later readings and for a twin request. Sealed, because redirect.url in it lets its
-- holder go on with the payment.
create table pending_answers (
  merchant_id uuid not null,
  payment_id  uuid not null,
  sealed      bytea not null,
  primary key (merchant_id, payment_id)
);

-- An approval that came after its payment had ended otherwise. It goes back once, however often it is heard of.
create table late_approvals (
  merchant_id     uuid not null,
  payment_id      uuid not null,
  reply           text not null,  -- JSON: what its reversal needs to name it
  heard_at        timestamptz not null,
  acknowledged_at timestamptz,    -- the other side has taken it back
  primary key (merchant_id, payment_id)
);
