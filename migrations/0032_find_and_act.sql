-- What people who work with a gateway look for: the requests that came, and payments by whatever is known of them.

-- Requests of the interface as they came, masked, for a few days. Of callers that nobody knows the merchant is nobody: 32 zeros.
create table request_records (
  merchant_id   uuid not null,
  id            uuid not null,             -- begins with the time
  recorded_at   timestamptz not null,      -- real time of the answer
  method        text not null,
  path          text not null,
  status        smallint not null,
  milliseconds  integer not null,
  number        text not null,             -- ends its ndc
  entity_id     uuid,
  token_id      uuid,
  payment_id    uuid,                      -- that it made, or that its path names
  result        text,                      -- code of the answer
  content       text not null,             -- JSON: fields, wrong parameters, unknown names
  primary key (merchant_id, id)
);
create index request_records_by_time on request_records (recorded_at, id);
create index request_records_of_payment on request_records (merchant_id, payment_id) where payment_id is not null;

-- The payments as people look for them: a consumer of the outbox writes it, and can begin anew at any time. Each index is one kind of thing that is looked
-- for, and ends with the order of the pages.
alter table events add column searched text constraint events_searched_check check (searched in ('done', 'superseded'));
create index events_not_searched on events (recorded_at) where searched is null;

create table searched_payments (
  merchant_id              uuid not null,
  payment_id               uuid not null,
  root_id                  uuid not null,
  channel_id               uuid not null,
  received_at              timestamptz not null,  -- business time
  mode                     text not null,
  payment_type             text not null,
  brand                    text,
  amount                   bigint,
  currency                 text,
  result                   text not null,         -- code; that of a pending payment until its answer
  outcome                  text not null,
  merchant_transaction_id  text,
  invoice                  text,
  bin                      text,
  last_four                text,
  email_hash               bytea,                 -- keyed: of small letters
  email_key                text,                  -- the lookup key that it was made with
  descriptor               text,
  slip_number              text,
  reference                text,                  -- retrieval reference number: what the acquirer knows it by
  primary key (merchant_id, payment_id)
);
create index searched_by_time on searched_payments (merchant_id, received_at, payment_id);
create index searched_by_result on searched_payments (merchant_id, result, received_at, payment_id);
create index searched_by_outcome on searched_payments (merchant_id, outcome, received_at, payment_id) where outcome <> 'success';
create index searched_by_chain on searched_payments (merchant_id, root_id, received_at, payment_id) where root_id <> payment_id;
create index searched_by_type on searched_payments (merchant_id, payment_type, received_at, payment_id);
create index searched_by_brand on searched_payments (merchant_id, brand, received_at, payment_id);
create index searched_by_amount on searched_payments (merchant_id, amount, received_at, payment_id);
create index searched_by_transaction on searched_payments (merchant_id, merchant_transaction_id, received_at, payment_id) where merchant_transaction_id is not null;
create index searched_by_invoice on searched_payments (merchant_id, invoice, received_at, payment_id) where invoice is not null;
create index searched_by_card on searched_payments (merchant_id, last_four, received_at, payment_id) where last_four is not null;
create index searched_by_bin on searched_payments (merchant_id, bin, received_at, payment_id) where bin is not null;
create index searched_by_email on searched_payments (merchant_id, email_hash, received_at, payment_id) where email_hash is not null;
create index searched_by_descriptor on searched_payments (merchant_id, descriptor, received_at, payment_id) where descriptor is not null;
create index searched_by_slip on searched_payments (merchant_id, slip_number, received_at, payment_id) where slip_number is not null;
create index searched_by_reference on searched_payments (merchant_id, reference, received_at, payment_id) where reference is not null;

-- What an endpoint was told again of a payment; what it was told first is found by deliveries_once.
create index deliveries_replayed on deliveries (merchant_id, payment_id) where replay;
