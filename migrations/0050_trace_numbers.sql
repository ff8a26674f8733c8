-- How many blocks of trace numbers were taken at an acquirer (DE32), by all processes together: a transaction is named there by its trace number and the second,
-- and by a reference of the number and the hour, whichever terminal it came from. Before, each terminal counted by itself (terminals.next_trace, which a release
-- that is restarted beside this one still does; the first block begins behind them all).
create table trace_numbers (
  acquirer_id  text primary key,
  blocks       bigint not null
);
