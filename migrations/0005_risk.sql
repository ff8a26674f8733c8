-- What was attempted with a card, an address, a device: for the velocity rules of the risk check. Subjects are keyed hashes, never clear values.

create table risk_attempts (
  merchant_id uuid not null,
  kind        text not null,   -- card, email, ip, device, customer
  subject     bytea not null,
  attempted_at timestamptz not null,  -- business time
  payment_id  uuid not null,
  amount      bigint not null,
  currency    text not null,
  primary key (merchant_id, kind, subject, attempted_at, payment_id)
);
create index risk_attempts_by_time on risk_attempts using brin (attempted_at);
