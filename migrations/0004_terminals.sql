-- Terminals at acquirers and their trace numbers. A process leases a terminal and takes numbers in blocks, so that none is given out twice
-- whoever dies when. A table of the whole platform: no merchant owns a terminal.

create table terminals (
  acquirer     text not null,
  terminal     text not null,
  next_trace   integer not null default 1 check (next_trace between 1 and 999999),
  leased_by    uuid,
  leased_until timestamptz,
  primary key (acquirer, terminal)
);
