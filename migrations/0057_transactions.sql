-- A transaction at a bank or a wallet settles one payment. Who names it first has it, whosever payment it is: a bank that begins nothing new for an order number
-- that it has seen would otherwise be paid once and settle twice. The key crosses merchants, because the other side knows none of ours.
create table claimed_transactions (
  connector       text not null,
  brand           text not null,
  transaction_id  text not null,
  merchant_id     uuid not null,
  payment_id      uuid not null,
  primary key (connector, brand, transaction_id)
);
create index claimed_transactions_of_merchant on claimed_transactions (merchant_id);

-- What was approved before has its transaction: the first of them, should there be two.
insert into claimed_transactions (connector, brand, transaction_id, merchant_id, payment_id)
select p.connector, coalesce(p.brand, ''), coalesce(a.reply::json ->> 'transactionId', a.reply::json ->> 'TRANSACTIONID'), p.merchant_id, p.id
  from payments p join answers a on a.merchant_id = p.merchant_id and a.payment_id = p.id
 where (p.connector like 'transfer %' or p.connector like 'wallet %') and p.payment_type in ('PA', 'DB') and a.approved
   and length(coalesce(a.reply::json ->> 'transactionId', a.reply::json ->> 'TRANSACTIONID')) <= 255
 order by p.id
on conflict do nothing;
