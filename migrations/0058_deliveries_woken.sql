-- Of a merchant who leaves, deliveries end until the fence stands, and of one who is held until the other cells were asked some may: they wake the next as well. Only of
-- one who arrives rows are copied as they are. One chain after the other, in an order, and without calling itself: a chain may have hundreds that were tried so often.
create or replace function wake_deliveries() returns trigger language plpgsql as $$
declare
  chain record;
  goes_on boolean;
begin
  for chain in
    select distinct c.merchant_id, c.endpoint_id, c.root_id from changed c
     where not c.behind and (c.state <> 'scheduled' or (c.attempts >= 8 and c.leased_until is null))
       and exists (select from deliveries d where d.merchant_id = c.merchant_id and d.endpoint_id = c.endpoint_id and d.root_id = c.root_id and d.state = 'scheduled' and d.behind)
       and not exists (select from merchant_moves m where m.merchant_id = c.merchant_id and m.direction = 'arriving' and not m.here)
     order by c.merchant_id, c.endpoint_id, c.root_id
  loop
    -- On past those that keep nobody waiting: tried so often already, or ended at this moment.
    loop
      update deliveries d set behind = false
        from (select merchant_id, endpoint_id, position from deliveries
               where merchant_id = chain.merchant_id and endpoint_id = chain.endpoint_id and root_id = chain.root_id and state = 'scheduled' and behind
               order by position limit 1) first
       where d.merchant_id = first.merchant_id and d.endpoint_id = first.endpoint_id and d.position = first.position
      returning d.state <> 'scheduled' or (d.attempts >= 8 and d.leased_until is null) into goes_on;
      exit when not found or not goes_on;
    end loop;
  end loop;
  return null;
end
$$;

drop trigger deliveries_wake on deliveries;
create trigger deliveries_wake after update on deliveries referencing new table as changed
  for each statement when (pg_trigger_depth() = 0) execute function wake_deliveries();
