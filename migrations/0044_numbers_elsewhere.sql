-- Another cell gives out the numbers of this bank account: its merchant has moved there, or is about to come. The row stays, so that none is given twice when the merchant comes back.
alter table slip_numbers add column elsewhere boolean not null default false;

update slip_numbers set elsewhere = true
 where account in (select account from slips where merchant_id in (select merchant_id from merchant_moves where not here)
                   union select account from refund_transfers where merchant_id in (select merchant_id from merchant_moves where not here));

-- The bank accounts of a merchant that is being forgotten: the rows that name them go before the files of the accounts.
alter table merchant_moves add column accounts text[];
