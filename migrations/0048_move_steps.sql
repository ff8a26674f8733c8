-- How many steps of its moves were written here: a process that lives through a fail-over knows by them whether the database has lost one, whatever clocks say.
alter table merchant_moves add column steps integer not null default 0;

-- Where the database stood until a gateway began that found it elsewhere and holds the merchant: whoever knows that nothing is lost since serves it again. Null
-- where that is known to be otherwise, or the other cells were asked.
alter table merchant_moves add column held_after text;
