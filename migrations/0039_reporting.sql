-- A database tells here, every two seconds, that it lives. Copied with everything else to the databases that follow it, the row says how old the copy is, whatever
-- stands between the two; its id says of which database it is.
create table beats (
  source text primary key,
  id uuid not null,
  beat_at timestamptz not null
);

-- In a database that subscribes to the cells of an operator: which. There is none in any other, and no gateway takes payments where there is one.
create table reporting_sources (
  source text primary key,
  subscribed_at timestamptz not null
);

-- A row of the same payment comes from two cells when its merchant was moved, in no order: the later one counts. Rows of before have no time, and are older than all.
alter table searched_payments add column written_at timestamptz;
