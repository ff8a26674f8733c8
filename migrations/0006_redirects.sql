-- Payments whose shopper has left and comes back: the addresses that were handed out, and what goes on when somebody returns.

-- One row for each payment that sent its shopper away. It outlives the continuation, so that a second click, the back button or a late
-- return finds the payment. Only hashes of the tokens are kept.
create table redirects (
  merchant_id  uuid not null,
  payment_id   uuid not null,
  page_hash    bytea not null,  -- of the token in the shopper's addresses
  notice_hash  bytea not null,  -- of the token in the address for notices from server to server, which no browser sees
  session_hash bytea,           -- of the cookie of the browser that began last
  made_at      timestamptz not null,
  primary key (merchant_id, payment_id)
);
create unique index redirects_by_page on redirects (merchant_id, page_hash);
create unique index redirects_by_notice on redirects (merchant_id, notice_hash);
create index redirects_by_time on redirects using brin (made_at);

-- The next step of a payment. Exactly one resumption takes the row, by deleting it; it erases the card's CVV with it.
create table continuations (
  merchant_id uuid not null,
  payment_id  uuid not null,
  step        text not null,
  sealed      bytea not null,  -- what the method needs to go on, and the pending answer
  secret      bytea,           -- the CVV during a 3-D Secure challenge, sealed
  mark        text,            -- what a hidden frame reported meanwhile
  deadline    timestamptz not null,  -- business time
  primary key (merchant_id, payment_id)
);
