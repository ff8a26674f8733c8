-- Merchants on their way from one cell to another, and those that went: a row in either database says how far it is (docs/scale.md).
create table merchant_moves (
  merchant_id uuid not null constraint merchant_moves_pkey primary key,
  direction text not null constraint merchant_moves_direction check (direction in ('leaving', 'arriving')),
  state text not null,
  -- Whether this cell serves the merchant. Of two cells that have its rows never more than one says so.
  here boolean not null,
  -- The name of the other cell.
  other text not null,
  -- Counts the commands that worked on it: one that was overtaken by another writes no more.
  run integer not null,
  -- What was there when it was handed over: rows and their hash, by table.
  counted jsonb,
  changed_at timestamptz not null
);

-- The fence around a merchant who has left: triggers for that merchant alone call it, so that a process that has not heard of it writes nothing any more.
-- Who takes away what was left behind says whose in tollgate.forgets.
create function refuse_elsewhere() returns trigger language plpgsql as $$
begin
  if current_setting('tollgate.forgets', true) is distinct from tg_argv[0] then
    raise exception using errcode = 'TG503', message = 'the merchant ' || tg_argv[0] || ' is served elsewhere';
  end if;
  if tg_op = 'DELETE' then return old; end if;
  return new;
end
$$;
