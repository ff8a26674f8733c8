-- Whether returns name the orders of a file by its number and their places in it, as gateways did until here: what they have written is answered for days. A reference of
-- today names the refund itself, whatever became of files and their numbers.
alter table transfer_files add column by_place boolean not null default true;
create index refund_transfers_by_id on refund_transfers (account, payment_id);

-- Files of transfers wait while nobody has said what the bank had already of a database that was put back; and the accounts of which somebody has.
alter table installation
  add column transfers_held boolean not null default false,
  add column transfers_released text[] not null default '{}';

-- A bank counts its files about transfers apart from those about slips.
alter table return_files add column series text not null default 'slips' constraint return_files_series_check check (series in ('slips', 'transfers'));
drop index return_files_by_number;
create unique index return_files_by_number on return_files (account, series, number) where number > 0;
